// What programs get at /.
#pragma once

namespace outrider {

inline constexpr const char* kWelcome =
    "Outrider is running.\n\n"
    "  POST /v1/chat/completions   OpenAI chat          POST /completion     llama.cpp completion\n"
    "  POST /v1/completions        OpenAI completions   POST /tokenize       text to tokens\n"
    "  POST /v1/responses          OpenAI responses     POST /detokenize     tokens to text\n"
    "  POST /v1/messages           Anthropic messages   POST /apply-template messages to prompt\n"
    "  POST /v1/embeddings         embeddings           POST /infill         text for a gap\n"
    "  POST /v1/rerank             documents by a query GET  /v1/models      the model\n"
    "  GET  /health  /props  /slots  /metrics           what the server is doing\n"
    "  GET  /live                                       the same, as a stream of snapshots\n"
    "  GET  /lora-adapters                              the adapters; POST sets their default scales\n";

}  // namespace outrider
