#include "apps/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace outrider {

Flags::Flags(CLI::App& app) : app_(app) {
  app_.set_config("--config", "", "file with flags: key = value, keys named as the long flags (TOML or INI)");
  app_.allow_config_extras(CLI::config_extras_mode::error);
}

std::string Flags::Register(const std::string& names, const std::string& help) {
  std::string for_cli, first_long, shown;
  std::vector<std::string> many_letter_shorts;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    known_.push_back(name);
    shown += (shown.empty() ? "" : ", ") + name;
    if (name.starts_with("--") && first_long.empty()) first_long = name;
    if (name.size() > 2 && name[1] != '-') {
      many_letter_shorts.push_back(name);
    } else {
      for_cli += (for_cli.empty() ? "" : ",") + name;
    }
  }
  for (const std::string& name : many_letter_shorts) long_names_[name] = first_long;
  entries_.push_back({group_, shown, help});
  return for_cli;
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

std::string Flags::MarkdownHelp() const {
  std::string text, group;
  for (const Entry& entry : entries_) {
    if (entry.help.empty()) continue;
    if (entry.group != group) {
      group = entry.group;
      text += fmt::format("\n## {}\n\n| flag | meaning | default |\n|---|---|---|\n", group);
    }
    text += fmt::format("| `{}` | {} | {} |\n", entry.names, entry.help, entry.Default());
  }
  return text;
}

void Flags::Parse(int argc, const char* const* argv) {
  std::vector<std::string> reversed;  // as CLI11 wants them
  for (int i = argc - 1; i >= 0; --i) {
    const auto found = long_names_.find(argv[i]);
    reversed.push_back(found == long_names_.end() ? argv[i] : found->second);
  }
  app_.parse(std::move(reversed));
}

std::string Flags::Nearest(const std::string& flag) const {
  const std::string name = flag.substr(0, flag.find('='));
  std::string nearest;
  int best = std::max(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& known : known_) {
    // The beginning of a flag is a more likely mistake than changed letters.
    const int distance = known.starts_with(name) ? 1 : EditDistance(name, known);
    if (distance < best) {
      best = distance;
      nearest = known;
    }
  }
  return nearest;
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
