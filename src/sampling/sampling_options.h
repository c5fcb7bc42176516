// How the next token is chosen. Names, meanings and defaults are llama.cpp's, so requests written for it work
// unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"

namespace outrider {

// A grammar that constrains the output. With `lazy`, it is inactive until one of the triggers appears (tool calls).
struct GrammarOptions {
  std::string text;  // GBNF with a rule named root; "" = no constraint
  bool lazy = false;
  std::vector<std::string> trigger_patterns;  // regular expressions over the text generated so far
  std::vector<Token> trigger_tokens;
  std::string prefill;  // text already in the prompt that the grammar counts as generated

  bool operator==(const GrammarOptions&) const = default;
};

// A limit on how long the model thinks: when it has drawn `budget` tokens since it began to, `closing` follows.
struct ReasoningOptions {
  int budget = -1;                       // -1 = no limit
  std::vector<Token> start;              // how thinking begins
  std::vector<std::vector<Token>> ends;  // and how it ends
  std::vector<Token> closing;            // a message, if one was asked for, and an end
  bool begun = false;                    // the prompt ends while the model is thinking
};

// What is done with the logits before a token is drawn, besides the logit bias, which comes first.
enum class SamplingStage { kPenalties, kDry, kTopNSigma, kTopK, kTypicalP, kTopP, kMinP, kXtc, kTemperature };

// llama.cpp's order.
inline const std::vector<SamplingStage> kDefaultSamplingStages = {
    SamplingStage::kPenalties, SamplingStage::kDry,      SamplingStage::kTopNSigma,
    SamplingStage::kTopK,      SamplingStage::kTypicalP, SamplingStage::kTopP,
    SamplingStage::kMinP,      SamplingStage::kXtc,      SamplingStage::kTemperature};

// llama.cpp's names ("top_k", "top-k", "topk") and letters ("k"); nothing for a stage that there is not.
std::optional<SamplingStage> SamplingStageFromName(std::string_view name);
std::optional<SamplingStage> SamplingStageFromLetter(char letter);
std::string_view NameOf(SamplingStage stage);  // "top_k"

struct SamplingOptions {
  uint64_t seed = 0;         // the same seed gives the same text
  float temperature = 0.8f;  // 0 = the most likely token
  float dynatemp_range =
      0.0f;  // the temperature moves by so much up or down, by the entropy of the candidates; 0 = off
  float dynatemp_exponent = 1.0f;
  int top_k = 40;                // keep the k most likely; 0 = all
  float top_p = 0.95f;           // keep the most likely that together reach p; 1 = all
  float min_p = 0.05f;           // drop tokens below p times the most likely; 0 = none
  float typical_p = 1.0f;        // locally typical sampling; 1 = off
  float top_n_sigma = -1.0f;     // keep logits within n standard deviations of the best; -1 = off
  float xtc_probability = 0.0f;  // chance of excluding the top choices; 0 = off
  float xtc_threshold = 0.1f;    // what counts as a top choice for XTC; above 0.5 = off

  int mirostat = 0;  // 1, 2 = this version of Mirostat replaces all filters and the temperature's place; 0 = off
  float mirostat_tau = 5.0f;  // its target: bits of surprise of a token
  float mirostat_eta = 0.1f;  // how fast it learns

  int repeat_last_n = 64;          // tokens the penalties look back; 0 = off, -1 = the whole sequence
  float repeat_penalty = 1.0f;     // divides (positive) logits of repeated tokens; 1 = off
  float frequency_penalty = 0.0f;  // subtracted for each earlier occurrence
  float presence_penalty = 0.0f;   // subtracted once if the token occurred

  float dry_multiplier = 0.0f;  // DRY: penalty for tokens that would extend a repetition; 0 = off
  float dry_base = 1.75f;
  int dry_allowed_length = 2;   // repetitions up to this length are free
  int dry_penalty_last_n = -1;  // tokens DRY looks back; 0 = off, -1 = the whole sequence
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  std::vector<SamplingStage> stages = kDefaultSamplingStages;  // in this order; those that are not named are left out
  std::vector<std::pair<Token, float>> logit_bias;             // added to the logits; -infinity bans a token
  GrammarOptions grammar;
  ReasoningOptions reasoning;
};

}  // namespace outrider
