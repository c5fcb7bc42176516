// Puts the weights of adapters where our kernels multiply them (src/kernels), so that a row's results do not depend on
// the rows beside it. libllama itself keeps them as they are in the file, whatever layout the model's weights have.
#pragma once

#include <ggml.h>

#include <vector>

struct llama_adapter_lora;

namespace outrider {

// Moves all weights of the adapter for which there is a layout. Ranks are filled up with zeros, which changes no
// product, to what a layout needs.
void PutInTiles(llama_adapter_lora* adapter);

// Types of those weights that are not in our layout.
std::vector<ggml_type> TypesNotInTiles(const llama_adapter_lora& adapter);

}  // namespace outrider
