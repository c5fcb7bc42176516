#include "drafters/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/secrets.h"
#include "drafters/head_drafter.h"
#include "drafters/model_drafter.h"
#include "drafters/ngram_cache.h"
#include "drafters/ngram_map.h"
#include "drafters/ngram_mod.h"
#include "drafters/ngram_simple.h"
#include "drafters/suffix_drafter.h"

namespace outrider {
namespace {

Status NotAParameter(const DrafterChoice& choice, std::string_view text) {
  return InvalidArgument(fmt::format("drafter {}: '{}' is not of the form key=value", choice.name, HideSecrets(text)));
}

// Adds "key=value", or "value", to the choice.
Status AddParameter(std::string_view text, DrafterChoice& choice) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos && !text.empty()) {
    choice.values.emplace_back(text);
    return {};
  }
  if (text.empty() || equals == 0) return NotAParameter(choice, text);
  const std::string key(text.substr(0, equals));
  if (!choice.parameters.emplace(key, text.substr(equals + 1)).second) {
    return InvalidArgument(fmt::format("drafter {}: {} is given twice", choice.name, key));
  }
  return {};
}

}  // namespace

Result<DrafterChoice> ParseDrafterChoice(std::string_view text) {
  const size_t colon = text.find(':');
  DrafterChoice choice;
  choice.name = text.substr(0, colon);
  if (choice.name.empty())
    return InvalidArgument(fmt::format("'{}' does not begin with the name of a drafter", HideSecrets(text)));
  if (colon == std::string_view::npos) return choice;

  std::string_view rest = text.substr(colon + 1);
  for (;;) {
    const size_t comma = rest.find(',');
    if (Status status = AddParameter(rest.substr(0, comma), choice); !status.ok()) return status;
    if (comma == std::string_view::npos) return choice;
    rest.remove_prefix(comma + 1);
  }
}

int DrafterParameters::Integer(const std::string& name, int default_value, int min, int max) {
  const std::string* text = Find(name);
  if (text == nullptr) return default_value;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= min && value <= max) return value;
  if (error_.ok()) {
    error_ = InvalidArgument(fmt::format("drafter {}: {} must be a whole number from {} to {}, not '{}'", choice_.name,
                                         name, min, max, *text));
  }
  return default_value;
}

bool DrafterParameters::Flag(const std::string& name, bool default_value) {
  const std::string* text = Find(name);
  if (text == nullptr) return default_value;
  if (*text == "true" || *text == "on" || *text == "1") return true;
  if (*text == "false" || *text == "off" || *text == "0") return false;
  if (error_.ok()) {
    error_ = InvalidArgument(fmt::format("drafter {}: {} must be on or off, not '{}'", choice_.name, name, *text));
  }
  return default_value;
}

std::string DrafterParameters::Text(const std::string& name, std::string default_value) {
  const std::string* text = Find(name);
  if (text != nullptr) return *text;
  return default_value;
}

Status DrafterParameters::Check() const {
  if (!error_.ok()) return error_;
  if (!takes_values_ && !choice_.values.empty()) return NotAParameter(choice_, choice_.values.front());
  for (const auto& [name, value] : choice_.parameters) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    if (known_.empty()) return InvalidArgument(fmt::format("drafter {} has no parameters", choice_.name));
    return InvalidArgument(
        fmt::format("drafter {} has no parameter {}; there are: {}", choice_.name, name, fmt::join(known_, ", ")));
  }
  return {};
}

const std::vector<std::string>& DrafterParameters::Values() {
  takes_values_ = true;
  return choice_.values;
}

const std::string* DrafterParameters::Find(const std::string& name) {
  known_.push_back(name);
  const auto found = choice_.parameters.find(name);
  return found == choice_.parameters.end() ? nullptr : &found->second;
}

const std::vector<DrafterKind>& DrafterKinds() {
  static const std::vector<DrafterKind> kinds = {
      SuffixKind(),     NgramSimpleKind(), NgramMapKKind(), NgramMapK4vKind(), NgramModKind(),
      NgramCacheKind(), ModelKind(),       Eagle3Kind(),    MtpKind(),
  };
  return kinds;
}

Result<std::unique_ptr<Drafter>> MakeDrafter(const DrafterChoice& choice, const DrafterEnvironment& environment,
                                             const std::vector<DrafterKind>& kinds) {
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == choice.name; });
  if (kind == kinds.end()) {
    std::vector<std::string_view> names;
    names.reserve(kinds.size());
    for (const DrafterKind& known : kinds) names.push_back(known.name);
    return InvalidArgument(fmt::format("there is no drafter '{}'; there are: {}", choice.name, fmt::join(names, ", ")));
  }
  // A kind reads all its parameters before it does anything else. So a wrong parameter is reported even if making the
  // drafter fails for another reason.
  DrafterParameters parameters(choice);
  Result<std::unique_ptr<Drafter>> drafter = kind->make(parameters, environment);
  if (Status status = parameters.Check(); !status.ok()) return status;
  return drafter;
}

}  // namespace outrider
