// Which kernels are faster on this CPU, ours or ggml's: tried out in milliseconds before a model is loaded.
#pragma once

#include <ggml.h>

namespace outrider::kernels {

// Weights of this type: one column, four and 64, one thread. Ours need not win by much to be chosen, and a draw is
// ours: with them a column's result does not depend on the others.
bool AreFasterFor(ggml_type type);

// Attention over f16 memory, for one row and four. Where models already hold a choice (plugin.h), that choice.
bool AreFasterForAttention();

}  // namespace outrider::kernels
