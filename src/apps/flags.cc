#include "apps/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace outrider {
namespace {

constexpr std::string_view kTrue[] = {"on", "enabled", "true", "1"};
constexpr std::string_view kFalse[] = {"off", "disabled", "false", "0"};

bool IsOneOf(std::span<const std::string_view> texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// llama.cpp's name for the variable that switches off what `variable` switches on.
std::string Negated(std::string_view variable) {
  constexpr std::string_view kPrefix = "LLAMA_ARG_";
  return variable.starts_with(kPrefix) ? fmt::format("{}NO_{}", kPrefix, variable.substr(kPrefix.size())) : "";
}

std::string Markdown(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string Spaced(std::string_view names) {
  std::string spaced;
  ForEachPart(names, [&](std::string_view name) { spaced += (spaced.empty() ? "" : ", ") + std::string(name); });
  return spaced;
}

}  // namespace

Flags::Flags(CLI::App& app) : app_(app) {
  app_.set_config("--config", "", "file with flags: key = value, keys named as the long flags (TOML or INI)");
  app_.allow_config_extras(CLI::config_extras_mode::error);
  entries_.push_back({"", "--config", ""});
  entries_.back().option = app_.get_config_ptr();
  spellings_["--config"] = {0, "--config"};
}

std::string Flags::Register(const std::string& names, const std::string& off_names, const std::string& help) {
  std::string for_cli;
  // CLI11 is told the long names only, those that switch off with a "!" in front.
  const auto add = [&](std::string_view list, std::string_view mark) {
    std::vector<std::string> all;
    ForEachPart(list, [&](std::string_view name) { all.emplace_back(name); });
    const auto first_long = std::find_if(all.begin(), all.end(), [](const auto& n) { return n.starts_with("--"); });
    for (const std::string& name : all) {
      const bool is_long = name.starts_with("--");
      if (is_long) for_cli += fmt::format("{}{}{}", for_cli.empty() ? "" : ",", mark, name);
      spellings_[name] = {entries_.size(), is_long ? name : *first_long};
    }
  };
  add(names, "");
  add(off_names, "!");
  entries_.push_back({group_, Spaced(names) + (off_names.empty() ? "" : ", ") + Spaced(off_names), help});
  return for_cli;
}

Status Flags::Parse(int argc, const char* const* argv, const Environment& environment) {
  given_.clear();
  given_entries_.clear();
  notes_.clear();
  help_wanted_ = false;
  if (Status status = ReadArguments({argv, static_cast<size_t>(argc)}); !status.ok() || help_wanted_) return status;
  if (Status status = ReadEnvironment(environment); !status.ok()) return status;
  std::vector<std::string> reversed;  // as CLI11 wants them
  for (auto given = given_.rbegin(); given != given_.rend(); ++given) {
    reversed.insert(reversed.end(), given->words.rbegin(), given->words.rend());
  }
  try {
    app_.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    const std::string what = error.what();
    const auto from_variable = std::find_if(given_.begin(), given_.end(), [&](const Given& given) {
      return !given.variable.empty() && what.find(given.words.front()) != what.npos;
    });
    const bool known = from_variable != given_.end();
    return InvalidArgument(what + (known ? fmt::format(" (the variable {} is set)", from_variable->variable) : ""));
  }
  return {};
}

Status Flags::ReadArguments(std::span<const char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string word = arguments[i];
    if (!word.starts_with("-") || word == "-") {
      return InvalidArgument(fmt::format("'{}' is not a flag, and no flag before it takes it as its value", word));
    }
    std::string name = word, value;
    const size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
    if (equals != word.npos) {
      name = word.substr(0, equals);
      value = word.substr(equals + 1);
    }
    if (name.starts_with("--")) std::replace(name.begin(), name.end(), '_', '-');  // as llama.cpp does
    if (name == "-h" || name == "--help" || name == "--usage") {
      help_wanted_ = true;
      return {};
    }
    const auto found = spellings_.find(name);
    const LlamaFlag* llama = found == spellings_.end() ? FindLlamaFlag(llama_, name) : nullptr;
    if (found == spellings_.end() && llama == nullptr) return Unknown(word);

    const bool is_switch = llama ? llama->values == 0 : entries_[found->second.entry].option == nullptr;
    bool has_value = equals != word.npos;
    if (!is_switch && !has_value) {
      const std::string implied = llama ? "" : entries_[found->second.entry].implied;
      const bool next_is_value = i + 1 < arguments.size() && (implied.empty() || *arguments[i + 1] != '-');
      if (!next_is_value && implied.empty()) return InvalidArgument(fmt::format("{} needs a value", name));
      value = next_is_value ? arguments[++i] : implied;
      has_value = true;
    }
    if (llama == nullptr) {
      Give(found->second, has_value ? &value : nullptr, "");
      continue;
    }
    if (llama->values > 1) i += static_cast<size_t>(llama->values - 1);
    if (Status status = ReadUnsupported(*llama, name, value); !status.ok()) return status;
  }
  return {};
}

// A flag that llama.cpp has and that we do not: the reason, or a note that it changes nothing.
Status Flags::ReadUnsupported(const LlamaFlag& flag, const std::string& shown, const std::string& value) {
  if (flag.kind != LlamaFlagKind::kRefused) {
    notes_.push_back(fmt::format("{} changes nothing: {}", shown, flag.note));
    return {};
  }
  if (flag.values > 0 && HasPart(flag.harmless, value)) {
    notes_.push_back(fmt::format("{} {} changes nothing", shown, value));
    return {};
  }
  return InvalidArgument(fmt::format("{} is refused: {}", shown, flag.note));
}

Status Flags::ReadEnvironment(const Environment& environment) {
  // First the variables that switch something off: they win over those that switch it on.
  for (const bool off : {true, false}) {
    for (const LlamaFlag& flag : llama_) {
      if (flag.variable.empty() || flag.variable.starts_with("LLAMA_ARG_NO_") != off) continue;
      const char* value = environment(std::string(flag.variable).c_str());
      if (value == nullptr || *value == 0 || IsGiven(flag)) continue;
      if (Status status = ReadVariable(flag, value); !status.ok()) return status;
    }
  }
  return {};
}

// A flag of the same entry, or of the pair that --x and --no-x are, is on the command line.
bool Flags::IsGiven(const LlamaFlag& flag) const {
  const auto found = spellings_.find(std::string(flag.names.substr(0, flag.names.find(','))));
  return found != spellings_.end() && given_entries_.contains(found->second.entry);
}

Status Flags::ReadVariable(const LlamaFlag& flag, const std::string& value) {
  const LlamaFlag* meant = &flag;
  const bool off = flag.variable.starts_with("LLAMA_ARG_NO_") && flag.values == 0;  // whatever its value is
  if (flag.values == 0 && !off && IsOneOf(kFalse, value)) {
    const std::string variable = Negated(flag.variable);
    const auto negated =
        std::find_if(llama_.begin(), llama_.end(), [&](const LlamaFlag& f) { return f.variable == variable; });
    if (negated == llama_.end()) return {};
    meant = &*negated;
  } else if (flag.values == 0 && !off && !IsOneOf(kTrue, value)) {
    return InvalidArgument(fmt::format("{}={}: it must be on or off", flag.variable, value));
  }
  if (meant->kind != LlamaFlagKind::kSupported) return ReadUnsupported(*meant, std::string(flag.variable), value);
  const auto found = spellings_.find(std::string(meant->names.substr(0, meant->names.find(','))));
  if (found == spellings_.end()) return {};  // --version and the like
  Give(found->second, flag.values == 0 ? nullptr : &value, std::string(flag.variable));
  return {};
}

void Flags::Give(const Spelling& spelling, const std::string* value, const std::string& variable) {
  given_entries_.insert(spelling.entry);
  const Entry& entry = entries_[spelling.entry];
  if (value == nullptr) {
    given_.push_back({{spelling.word}, variable});
  } else if (entry.option == nullptr) {
    given_.push_back({{spelling.word + "=" + *value}, variable});
  } else if (!entry.default_values.contains(*value)) {
    given_.push_back({{spelling.word, *value}, variable});
  }
}

Status Flags::Unknown(const std::string& word) const {
  const std::string name = word.substr(0, word.find('='));
  const std::string nearest = Nearest(name);
  return InvalidArgument(nearest.empty()
                             ? fmt::format("'{}' is not a flag; {} --help lists them", name, app_.get_name())
                             : fmt::format("'{}' is not a flag; did you mean {}?", name, nearest));
}

std::string Flags::Nearest(const std::string& flag) const {
  const std::string name = flag.substr(0, flag.find('='));
  const size_t dashes = std::min(name.find_first_not_of('-'), name.size());
  const size_t letters = name.size() - dashes;
  constexpr size_t kShortestBeginning = 3;
  const int limit = static_cast<int>(letters) / 4;  // one mistake in four letters is still near
  std::string nearest;
  int best = 0;
  for (const auto& [known, spelling] : spellings_) {
    if (known.starts_with("--") != name.starts_with("--")) continue;
    // The beginning of a flag is a more likely mistake than changed letters.
    const bool beginning = letters >= kShortestBeginning && known.starts_with(name);
    const int distance = beginning ? 1 : EditDistance(name, known);
    if ((beginning || distance <= limit) && (nearest.empty() || distance < best)) {
      best = distance;
      nearest = known;
    }
  }
  return nearest;
}

std::string Flags::Entry::Default() const {
  const std::string text = option == nullptr ? "" : option->get_default_str();
  return text == "[]" ? "" : text;
}

std::string Flags::Help() const {
  std::string text, group;
  for (const Entry& entry : entries_) {
    if (entry.help.empty()) continue;
    if (entry.group != group) text += fmt::format("\n{}:\n", group = entry.group);
    const std::string value = entry.option == nullptr ? "" : " VALUE";
    text += fmt::format("  {:<38} {}", entry.names + value, entry.help);
    text += entry.Default().empty() ? "\n" : fmt::format(" [{}]\n", entry.Default());
  }
  return text;
}

std::string Flags::VariableOf(const Entry& entry) const {
  std::string variables;
  for (const LlamaFlag& flag : llama_) {
    const auto found = spellings_.find(std::string(flag.names.substr(0, flag.names.find(','))));
    const bool same = found != spellings_.end() && &entries_[found->second.entry] == &entry;
    if (same && !flag.variable.empty() && !flag.variable.starts_with("LLAMA_ARG_NO_")) {
      variables += fmt::format("{}`{}`", variables.empty() ? "" : ", ", flag.variable);
    }
  }
  return variables;
}

std::string Flags::MarkdownHelp() const {
  std::string text, group;
  const bool variables = !llama_.empty();
  for (const Entry& entry : entries_) {
    if (entry.help.empty()) continue;
    if (entry.group != group) {
      group = entry.group;
      text += fmt::format("\n## {}\n\n| flag | meaning | default |{}\n|---|---|---|{}\n", group,
                          variables ? " variable |" : "", variables ? "---|" : "");
    }
    text += fmt::format("| `{}` | {} | {} |", entry.names, Markdown(entry.help), Markdown(entry.Default()));
    text += variables ? fmt::format(" {} |\n", VariableOf(entry)) : "\n";
  }
  const auto list = [&](LlamaFlagKind kind, std::string_view heading) {
    text += heading;
    for (const LlamaFlag& flag : llama_) {
      if (flag.kind != kind) continue;
      const std::string variable = flag.variable.empty() ? "" : fmt::format("`{}`", flag.variable);
      const std::string unless = flag.harmless.empty() ? "" : fmt::format(" (accepted with {})", Spaced(flag.harmless));
      text += fmt::format("| `{}` | {}{} | {} |\n", Spaced(flag.names), Markdown(flag.note), unless, variable);
    }
  };
  if (!variables) return text;
  list(LlamaFlagKind::kAccepted,
       "\n## Flags of llama.cpp that are accepted and change nothing\n\nOne line of the log says so.\n\n"
       "| flag | why | variable |\n|---|---|---|\n");
  list(LlamaFlagKind::kRefused,
       "\n## Flags of llama.cpp that are refused\n\nThe server does not start, and says why.\n\n"
       "| flag | why, and what to do instead | variable |\n|---|---|---|\n");
  return text;
}

int EditDistance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace outrider
