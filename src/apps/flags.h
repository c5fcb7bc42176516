// Flags: command-line flags on top of CLI11, with what CLI11 lacks: llama.cpp's many-letter short flags (-ngl, -fa),
// and a suggestion for a flag that does not exist.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace outrider {

class Flags {
 public:
  // `app` outlives this object. It gets a flag --config, which reads flags from a file.
  explicit Flags(CLI::App& app);

  // Heading of the flags that follow, in the help.
  void Group(const std::string& title) { group_ = title; }

  // `names`: "-c,--ctx-size" or "-ngl,--gpu-layers"; the first long one is also the key in a config file. The
  // field's present value is the default.
  template <typename T>
  CLI::Option* Add(const std::string& names, T& field, const std::string& help) {
    CLI::Option* option = app_.add_option(Register(names, help), field)->capture_default_str();
    entries_.back().option = option;
    return option;
  }

  // A flag without a value that sets `field` to `value`.
  CLI::Option* Switch(const std::string& names, bool& field, const std::string& help, bool value = true) {
    return app_.add_flag_callback(Register(names, help), [&field, value] { field = value; });
  }

  // Flags of llama.cpp that switch on what Outrider always does; they are accepted and have no effect.
  void AlwaysOn(const std::string& names) { app_.add_flag(Register(names, "")); }

  // Fills the fields from the arguments, without the program's name, and from the config file that they name. Throws
  // CLI11's exceptions: CLI::CallForHelp, CLI::ExtrasError for an unknown flag, else a CLI::ParseError.
  void Parse(int argc, const char* const* argv);

  // The known flag most like `flag`, or "" if none is close.
  std::string Nearest(const std::string& flag) const;

  // All flags with their defaults, for a terminal and as the tables of docs/FLAGS.md.
  std::string Help() const;
  std::string MarkdownHelp() const;

 private:
  struct Entry {
    std::string group, names, help;
    CLI::Option* option = nullptr;  // null for flags without a value
    std::string Default() const;
  };

  std::string Register(const std::string& names, const std::string& help);  // what CLI11 is told

  CLI::App& app_;
  std::string group_;
  std::vector<Entry> entries_;
  std::map<std::string, std::string> long_names_;  // "-ngl" to "--gpu-layers"
  std::vector<std::string> known_;
};

// The minimum number of insertions, deletions and replacements that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

}  // namespace outrider
