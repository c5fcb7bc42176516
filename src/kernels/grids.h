// The tables of ggml's IQ2 and IQ3 types: an index of 8 to 10 bits stands for eight or four magnitudes. Here an entry
// is four magnitudes with 64 added, because the kernels multiply unsigned bytes; eight magnitudes are two entries.
#pragma once

#include <cstdint>

namespace outrider::kernels {

template <int kEntries>
struct Grid {
  alignas(64) uint32_t entries[kEntries];
};

extern const Grid<2 * 256> kIq2XxsGrid;
extern const Grid<2 * 512> kIq2XsGrid;
extern const Grid<2 * 1024> kIq2SGrid;
extern const Grid<256> kIq3XxsGrid;
extern const Grid<512> kIq3SGrid;

}  // namespace outrider::kernels
