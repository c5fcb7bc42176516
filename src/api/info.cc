// What the server is and what it is doing, as JSON: models, props, slots. Names are llama.cpp's.
#include "api/info.h"

#include "api/answer_fields.h"
#include "api/attachments.h"

namespace outrider {
namespace {

std::string SpecialText(Token token, const Tokenizer& tokenizer) {
  return token == kNoToken ? "" : tokenizer.Piece(token, /*show_special=*/true);
}

SlotStatus OnlyWhetherBusy(const SlotStatus& slot) {
  return {.id = slot.id, .busy = slot.busy, .tokens_left = -1};
}

bool Reads(const ApiContext& context, MediaKind kind) {
  return context.media != nullptr && context.media->Reads(kind);
}

Json Capabilities(const ApiContext& context) {
  Json capabilities = Json::array({"completion"});
  if (context.media != nullptr) capabilities.push_back("multimodal");
  return capabilities;
}

}  // namespace

Json ModelsJson(const ApiContext& context, const ServerInfo& info) {
  Json meta = {{"description", info.model_description},
               {"n_vocab", context.tokenizer.vocabulary_size()},
               {"n_ctx_train", info.trained_context},
               {"n_ctx", context.sequence_length},
               {"n_embd", info.embedding_size},
               {"n_params", info.model_parameters},
               {"size", info.model_bytes}};
  Json model = {{"id", context.model_name},
                {"object", "model"},
                {"created", context.start_time},
                {"owned_by", "outrider"},
                {"meta", std::move(meta)}};
  if (!context.aliases.empty()) model["aliases"] = context.aliases;
  // Ollama's shape of the same, which some of llama.cpp's clients read. What is unknown is "".
  Json ollama = {{"name", context.model_name},
                 {"model", context.model_name},
                 {"modified_at", ""},
                 {"size", ""},
                 {"digest", ""},
                 {"type", "model"},
                 {"description", info.model_description},
                 {"tags", Json::array({""})},
                 {"capabilities", Capabilities(context)},
                 {"parameters", ""},
                 {"details",
                  {{"parent_model", ""},
                   {"format", "gguf"},
                   {"family", ""},
                   {"families", Json::array({""})},
                   {"parameter_size", ""},
                   {"quantization_level", info.quantisation}}}};
  return {{"models", Json::array({std::move(ollama)})}, {"object", "list"}, {"data", Json::array({std::move(model)})}};
}

Json PropsJson(const ApiContext& context, const ServerInfo& info) {
  return {
      {"default_generation_settings",
       {{"n_ctx", context.sequence_length}, {"params", SettingsJson(context.sampling, context.max_tokens)}}},
      {"total_slots", context.n_slots},
      {"model_alias", context.model_name},
      {"model_path", info.model_path},
      {"model_ftype", info.quantisation},
      {"modalities",
       {{"vision", Reads(context, MediaKind::kImage)}, {"video", false}, {"audio", Reads(context, MediaKind::kAudio)}}},
      {"media_marker", kPublicMarker},
      {"chat_template_caps", context.chat.abilities()},
      {"endpoint_slots", info.slots},
      {"endpoint_props", false},  // POST /props
      {"endpoint_metrics", true},
      {"ui", info.page},
      {"is_sleeping", false},
      {"cors_proxy_enabled", false},
      {"chat_template", context.chat.source()},
      {"bos_token", SpecialText(context.tokenizer.bos(), context.tokenizer)},
      {"eos_token", SpecialText(context.tokenizer.eos(), context.tokenizer)},
      {"build_info", info.build},
      {"drafters", context.drafters},
      {"lora_adapters", context.adapters == nullptr ? Json::array() : context.adapters->Describe()},
      {"kernels", info.kernels},
      {"rollback", info.rollback},
      {"exactness",
       {{"holds", info.exactness.empty()}, {"reason", info.exactness}, {"rests_on", info.exactness_rests_on}}}};
}

Json SlotsJson(const std::vector<SlotStatus>& slots, const Viewer& viewer, const ApiContext& context) {
  Json list = Json::array();
  for (const SlotStatus& any : slots) {
    const SlotStatus slot = viewer.sees_all || any.owner == viewer.owner ? any : OnlyWhetherBusy(any);
    Json next_token = {{"has_next_token", slot.busy},
                       {"n_remain", slot.tokens_left},
                       {"n_decoded", slot.busy ? slot.generated_tokens : 0}};
    list.push_back({{"id", slot.id},
                    {"n_ctx", context.sequence_length},
                    {"is_processing", slot.busy},
                    {"n_prompt_tokens", slot.prompt_tokens},
                    {"tokens_in_memory", slot.tokens_in_memory},
                    {"next_token", Json::array({std::move(next_token)})}});
  }
  return list;
}

}  // namespace outrider
