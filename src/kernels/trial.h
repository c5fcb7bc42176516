// Which kernels are faster on this CPU, ours or ggml's: tried out in milliseconds before a model is loaded.
#pragma once

#include <ggml.h>

namespace outrider::kernels {

// Compares products with weights of this type: one, four and 64 columns, one thread. Our kernels are preferred if the
// times are about equal, because with them the result of a column does not depend on the other columns.
bool AreFasterFor(ggml_type type);

// The same for attention over f16 memory, with one row and with four. If models already hold a choice (plugin.h),
// returns that choice.
bool AreFasterForAttention();

}  // namespace outrider::kernels
