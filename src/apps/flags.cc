#include "apps/flags.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace outrider {

std::string Flags::Register(const std::string& names) {
  std::vector<std::string> shorts;
  std::string for_cli, first_long;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    known_.push_back(name);
    if (name.starts_with("--") && first_long.empty()) first_long = name;
    if (name.size() > 2 && name[1] != '-') {
      shorts.push_back(name);
    } else {
      for_cli += (for_cli.empty() ? "" : ",") + name;
    }
  }
  aliases_of_last_.clear();
  for (const std::string& name : shorts) {
    long_names_[name] = first_long;
    aliases_of_last_ += (aliases_of_last_.empty() ? " (also " : ", ") + name;
  }
  if (!aliases_of_last_.empty()) aliases_of_last_ += ")";
  return for_cli;
}

std::vector<std::string> Flags::Translate(int argc, const char* const* argv) const {
  std::vector<std::string> arguments;
  for (int i = 0; i < argc; ++i) {
    const auto found = long_names_.find(argv[i]);
    arguments.push_back(found == long_names_.end() ? argv[i] : found->second);
  }
  return arguments;
}

std::string Flags::Nearest(const std::string& flag) const {
  const std::string name = flag.substr(0, flag.find('='));
  std::string nearest;
  int fewest = std::max(2, static_cast<int>(name.size()) / 3) + 1;
  for (const std::string& known : known_) {
    // A beginning of a flag is a likelier slip than any letters changed.
    const int distance = known.starts_with(name) ? 1 : EditDistance(name, known);
    if (distance < fewest) {
      fewest = distance;
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
