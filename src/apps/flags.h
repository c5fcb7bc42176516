// Command-line flags on top of CLI11, with what CLI11 lacks: llama.cpp's many-letter short flags (-ngl, -fa), and a
// suggestion for a flag that does not exist.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace outrider {

class Flags {
 public:
  explicit Flags(CLI::App& app) : app_(app) {}

  // `names`: "-c,--ctx-size" or "-ngl,--gpu-layers"; the first long one also names it in a config file.
  template <typename T>
  CLI::Option* Add(const std::string& names, T& field, const std::string& help) {
    return app_.add_option(Register(names), field, help + aliases_of_last_)->capture_default_str();
  }

  // A flag without a value that sets `field` to `value`.
  CLI::Option* Switch(const std::string& names, bool& field, const std::string& help, bool value = true) {
    return app_.add_flag_callback(
        Register(names), [&field, value] { field = value; }, help + aliases_of_last_);
  }

  // Flags of llama.cpp that ask for what is always so here.
  void AlwaysOn(const std::string& names) { app_.add_flag(Register(names))->group(""); }

  // Many-letter short flags replaced by their long names, so that CLI11 understands them.
  std::vector<std::string> Translate(int argc, const char* const* argv) const;

  // The known flag most like `flag`, or "" if none is close.
  std::string Nearest(const std::string& flag) const;

 private:
  std::string Register(const std::string& names);  // what CLI11 is told

  CLI::App& app_;
  std::map<std::string, std::string> long_names_;  // "-ngl" to "--gpu-layers"
  std::vector<std::string> known_;
  std::string aliases_of_last_;
};

// Fewest insertions, deletions and replacements that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

}  // namespace outrider
