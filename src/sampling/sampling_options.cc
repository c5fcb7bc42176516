#include "sampling/sampling_options.h"

#include <algorithm>
#include <cctype>

namespace outrider {
namespace {

struct StageName {
  SamplingStage stage;
  std::string_view name;
  char letter;
};

constexpr StageName kStageNames[] = {
    {SamplingStage::kPenalties, "penalties", 'e'},
    {SamplingStage::kDry, "dry", 'd'},
    {SamplingStage::kTopNSigma, "top_n_sigma", 's'},
    {SamplingStage::kTopK, "top_k", 'k'},
    {SamplingStage::kTypicalP, "typ_p", 'y'},
    {SamplingStage::kTopP, "top_p", 'p'},
    {SamplingStage::kMinP, "min_p", 'm'},
    {SamplingStage::kXtc, "xtc", 'x'},
    {SamplingStage::kTemperature, "temperature", 't'},
};

// Lower case, without what separates words.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

}  // namespace

std::optional<SamplingStage> SamplingStageFromName(std::string_view name) {
  const std::string plain = Plain(name);
  if (plain == "nucleus") return SamplingStage::kTopP;
  if (plain == "temp") return SamplingStage::kTemperature;
  if (plain == "typ" || plain == "typicalp") return SamplingStage::kTypicalP;
  for (const StageName& each : kStageNames) {
    if (Plain(each.name) == plain) return each.stage;
  }
  return std::nullopt;
}

std::optional<SamplingStage> SamplingStageFromLetter(char letter) {
  for (const StageName& each : kStageNames) {
    if (each.letter == letter) return each.stage;
  }
  return std::nullopt;
}

std::string_view NameOf(SamplingStage stage) {
  const auto found = std::find_if(std::begin(kStageNames), std::end(kStageNames),
                                  [&](const auto& each) { return each.stage == stage; });
  return found->name;
}

}  // namespace outrider
