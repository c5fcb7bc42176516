#include "kernels/grids.h"

#define GGML_COMMON_IMPL_CPP
#include <ggml-common.h>

#include <cstring>

namespace outrider::kernels {
namespace {

template <int kEntries, typename Table>
Grid<kEntries> GridOf(const Table& table) {
  Grid<kEntries> grid;
  static_assert(sizeof table == sizeof grid.entries, "four magnitudes are an entry");
  std::memcpy(grid.entries, table, sizeof table);
  for (uint32_t& entry : grid.entries) entry += 0x40404040U;  // no magnitude is above 63
  return grid;
}

}  // namespace

const Grid<2 * 256> kIq2XxsGrid = GridOf<2 * 256>(iq2xxs_grid);
const Grid<2 * 512> kIq2XsGrid = GridOf<2 * 512>(iq2xs_grid);
const Grid<2 * 1024> kIq2SGrid = GridOf<2 * 1024>(iq2s_grid);
const Grid<256> kIq3XxsGrid = GridOf<256>(iq3xxs_grid);
const Grid<512> kIq3SGrid = GridOf<512>(iq3s_grid);

}  // namespace outrider::kernels
