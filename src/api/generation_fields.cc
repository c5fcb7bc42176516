#include "api/generation_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "api/fields.h"
#include "api/token_list.h"
#include "base/request_budget.h"

namespace outrider {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
constexpr double kBanBias = -100;  // OpenAI's smallest bias, documented to ban the token
constexpr double kMaxBias = 1e6;   // outweighs any logit and leaves room to add to it

void ReadSampling(FieldReader* fields, SamplingOptions* sampling) {
  fields->Float("temperature", 0, 100, &sampling->temperature);
  fields->Float("dynatemp_range", 0, 100, &sampling->dynatemp_range);
  fields->Float("dynatemp_exponent", 0, 100, &sampling->dynatemp_exponent);
  fields->Int("top_k", -1, kMaxInt, &sampling->top_k);
  if (sampling->top_k < 0) sampling->top_k = 0;  // -1 means "all" for other servers
  fields->Float("top_p", 0, 1, &sampling->top_p);
  fields->Float("min_p", 0, 1, &sampling->min_p);
  fields->Float("typical_p", 0, 1, &sampling->typical_p);
  fields->Float("top_n_sigma", -1, 100, &sampling->top_n_sigma);
  fields->Float("xtc_probability", 0, 1, &sampling->xtc_probability);
  fields->Float("xtc_threshold", 0, 1, &sampling->xtc_threshold);
  fields->Int("repeat_last_n", -1, kMaxInt, &sampling->repeat_last_n);
  fields->Float("repeat_penalty", 0.01, 100, &sampling->repeat_penalty);
  fields->Float("presence_penalty", -100, 100, &sampling->presence_penalty);
  fields->Float("frequency_penalty", -100, 100, &sampling->frequency_penalty);
  fields->Float("dry_multiplier", 0, 100, &sampling->dry_multiplier);
  fields->Float("dry_base", 1, 100, &sampling->dry_base);
  fields->Int("dry_allowed_length", 0, kMaxInt, &sampling->dry_allowed_length);
  fields->Int("dry_penalty_last_n", -1, kMaxInt, &sampling->dry_penalty_last_n);
  fields->Int("mirostat", 0, 2, &sampling->mirostat);
  fields->Float("mirostat_tau", 0, 100, &sampling->mirostat_tau);
  fields->Float("mirostat_eta", 0, 1, &sampling->mirostat_eta);
  fields->StringOrList("dry_sequence_breakers", kMaxSequenceBreakers, &sampling->dry_sequence_breakers);
  fields->Seed("seed", &sampling->seed);
}

// "samplers": ["top_k", "temperature"], or their letters, "kt".
void ReadStages(FieldReader* fields, SamplingOptions* sampling) {
  constexpr size_t kMaxStages = 32;
  if (!fields->Has("samplers")) return;
  std::vector<std::string> names;
  const Json& given = fields->At("samplers");
  if (given.is_string()) {
    for (const char letter : given.get<std::string>()) names.emplace_back(1, letter);
  } else {
    fields->StringOrList("samplers", kMaxStages, &names);
  }
  sampling->stages.clear();
  for (const std::string& name : names) {
    const auto stage = given.is_string() ? SamplingStageFromLetter(name[0]) : SamplingStageFromName(name);
    if (!stage) return fields->Fail("samplers", fmt::format("'{}' is not one of this server's", name));
    if (sampling->stages.size() == kMaxStages) return fields->Fail("samplers", "has too many entries");
    sampling->stages.push_back(*stage);
  }
}

// The tokens of a logit_bias entry: an id, a decimal id as text, or text that stands for all its tokens. None if there
// is no such token.
std::vector<Token> BiasedTokens(const Json& key, const Tokenizer& tokenizer) {
  Json id = key;
  if (key.is_string()) {
    const std::string& text = key.get_ref<const std::string&>();
    if (text.size() > kMaxListedBytes) return {};
    int64_t number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) {
      return tokenizer.Tokenize(text, /*add_bos=*/false, SpecialTokens::kAsText);
    }
    id = number;
  }
  const std::optional<Token> token = TokenFromId(id, tokenizer);
  return token ? std::vector<Token>{*token} : std::vector<Token>();
}

// A key of logit_bias, for an error.
std::string Shown(const Json& key) {
  const std::string text = DumpJson(key);
  return text.size() > kMaxListedBytes ? "a key of " + std::to_string(text.size()) + " bytes" : text;
}

void ReadLogitBias(FieldReader* fields, const Tokenizer& tokenizer, SamplingOptions* sampling) {
  if (!fields->Has("logit_bias")) return;
  const Json& biases = fields->At("logit_bias");
  if (!biases.is_object() && !biases.is_array()) {
    return fields->Fail("logit_bias", "must be an object of token: bias, or a list of [token, bias] pairs");
  }
  sampling->logit_bias.clear();
  for (const auto& [name, entry] : biases.items()) {
    const bool is_pair = entry.is_array() && entry.size() == 2;
    if (biases.is_array() && !is_pair) {
      return fields->Fail("logit_bias", "a list must hold [token, bias] pairs only");
    }
    const Json key = biases.is_array() ? entry[0] : Json(name);
    const Json& bias = biases.is_array() ? entry[1] : entry;
    const std::vector<Token> tokens = BiasedTokens(key, tokenizer);
    if (tokens.empty()) {
      return fields->Fail("logit_bias", fmt::format("{} is not a token of this model, whose ids are 0 to {}",
                                                    Shown(key), tokenizer.vocabulary_size() - 1));
    }
    const bool banned = bias.is_boolean() && !bias.get<bool>();
    if (!banned && !bias.is_number()) {
      return fields->Fail("logit_bias", fmt::format("the bias of {} must be a number, or false to ban it", Shown(key)));
    }
    if (!banned && bias.get<double>() > kMaxBias) {
      return fields->Fail("logit_bias", fmt::format("the bias of {} must be at most {}", Shown(key), kMaxBias));
    }
    float value = -std::numeric_limits<float>::infinity();
    if (!banned && bias.get<double>() > kBanBias) value = bias.get<float>();
    if (sampling->logit_bias.size() + tokens.size() > kMaxLogitBiases) {
      sampling->logit_bias.clear();
      return fields->Fail("logit_bias", fmt::format("has more than {} tokens", kMaxLogitBiases));
    }
    for (const Token token : tokens) sampling->logit_bias.emplace_back(token, value);
  }
}

// "speculative": {"n_max": 8, …}, or llama.cpp's flat "speculative.n_max": 8.
void ReadSpeculation(FieldReader* fields, SpeculationOptions* speculation) {
  constexpr size_t kMaxTypes = 16;
  constexpr int kMaxDraft = 1024;
  Json nested = Json::object();
  fields->Object("speculative", &nested);
  FieldReader inner(nested, "speculative.");
  inner.Bool("enabled", &speculation->enabled);
  inner.StringOrList("types", kMaxTypes, &speculation->types);
  inner.Int("n_max", 0, kMaxDraft, &speculation->n_max);
  inner.Int("n_min", 0, kMaxDraft, &speculation->n_min);
  inner.Float("p_min", 0, 1, &speculation->p_min);
  inner.Bool("provenance", &speculation->provenance);
  if (!inner.status().ok()) return fields->Adopt(inner.status());
  fields->StringOrList("speculative.types", kMaxTypes, &speculation->types);
  fields->Int("speculative.n_max", 0, kMaxDraft, &speculation->n_max);
  fields->Int("speculative.n_min", 0, kMaxDraft, &speculation->n_min);
  fields->Float("speculative.p_min", 0, 1, &speculation->p_min);
}

// A drafter that the server does not have is an error: to ignore it would be to speculate in another way than asked.
void CheckDrafters(const std::vector<std::string>& known, FieldReader* fields, SpeculationOptions* speculation) {
  for (std::string& type : speculation->types) {
    type = OurDrafterName(type);
    if (type == "none") {
      speculation->enabled = false;
    } else if (std::find(known.begin(), known.end(), type) == known.end()) {
      fields->Fail("speculative.types", known.empty() ? "this server runs without drafters"
                                                      : fmt::format("'{}' is not one of this server's drafters: {}",
                                                                    type, fmt::join(known, ", ")));
    }
  }
}

// Fields of llama.cpp that would change the text, and that this server does not have. Switched off they are taken.
void RefuseUnsupported(FieldReader* fields) {
  float adaptive_target = -1;
  if (fields->At("adaptive_target").is_number()) fields->Float("adaptive_target", -1e9, 1e9, &adaptive_target);
  if (adaptive_target >= 0) fields->Fail("adaptive_target", "is not supported");
}

void ReadAdapters(const ApiContext& context, FieldReader* fields, AdapterSet* adapters) {
  static const AdapterList kNone;
  auto read = (context.adapters != nullptr ? *context.adapters : kNone).Read(fields->At("lora"));
  if (!read.ok()) return fields->Adopt(read.status());
  *adapters = std::move(*read);
}

}  // namespace

Status ReadGenerationFields(const Json& body, const ApiContext& context, GenerationRequest* request) {
  FieldReader fields(body);
  request->sampling = context.sampling;
  // 32 bits, so that every client can read the seed back exactly, whatever it holds numbers in.
  if (context.random_seed) request->sampling.seed = std::random_device{}();
  ReadSampling(&fields, &request->sampling);
  ReadStages(&fields, &request->sampling);
  ReadLogitBias(&fields, context.tokenizer, &request->sampling);

  ReadSpeculation(&fields, &request->speculation);
  CheckDrafters(context.drafters, &fields, &request->speculation);

  request->stop = context.stop;
  request->ignore_eos = context.ignore_eos;
  request->reuse_prefix = context.reuse_prefix;
  fields.StringOrList("stop", kMaxStopStrings, &request->stop);
  fields.Bool("ignore_eos", &request->ignore_eos);
  fields.Bool("cache_prompt", &request->reuse_prefix);
  fields.Int("id_slot", -1, context.n_slots - 1, &request->slot);
  int time_limit_ms = -1;
  fields.Int("t_max_predict_ms", -1, kMaxInt, &time_limit_ms);
  if (time_limit_ms > 0) request->time_limit = std::chrono::milliseconds(time_limit_ms);
  RefuseUnsupported(&fields);
  ReadAdapters(context, &fields, &request->adapters);
  return fields.status();
}

Status ReadMaxTokens(const Json& body, const std::vector<const char*>& names, MaxTokensLimits limits,
                     const ApiContext& context, GenerationRequest* request) {
  FieldReader fields(body);
  int asked = -1;
  for (const char* name : names) {
    if (!fields.Has(name)) continue;
    fields.Int(name, limits == MaxTokensLimits::kPositive ? 1 : -1, kMaxInt, &asked);
    if (!fields.status().ok()) {
      const bool positive = limits == MaxTokensLimits::kPositive;
      return InvalidArgument(fmt::format("must be a whole number between {} and {}{}", positive ? 1 : 0, kMaxInt,
                                         positive ? "" : ", or -1 for no limit"),
                             name);
    }
    break;
  }
  request->max_tokens = asked < 0 ? context.max_tokens : asked;
  return fields.status();
}

}  // namespace outrider
