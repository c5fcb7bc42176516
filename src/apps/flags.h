// Flags: a command line, the environment and a config file, read into the fields of option structs.
//
// On top of CLI11, which converts and checks values, with what it lacks: llama.cpp's many-letter short flags (-ngl,
// -fa), which are never read as one letter with a value; llama.cpp's environment variables; and a word about each flag
// of llama.cpp that is not supported (llama_flags.h). What comes later on a command line wins, a flag wins over a
// variable, and both win over the config file.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/llama_flags.h"
#include "base/status.h"

namespace outrider {

class Flags {
 public:
  using Environment = std::function<const char*(const char* variable)>;  // null if it is not set

  // `app` outlives this object. It gets a flag --config, which reads flags from a file.
  explicit Flags(CLI::App& app);

  // From now on llama.cpp's flags and variables are known, those too that are not supported. `llama` outlives this.
  void Follow(std::span<const LlamaFlag> llama) { llama_ = llama; }

  // Heading of the flags that follow, in the help.
  void Group(const std::string& title) { group_ = title; }

  // `names`: "-c,--ctx-size" or "-ngl,--gpu-layers"; the first long one is also the key in a config file. The
  // field's present value is the default.
  template <typename T>
  CLI::Option* Add(const std::string& names, T& field, const std::string& help) {
    CLI::Option* option = app_.add_option(Register(names, "", help), field)->capture_default_str();
    if constexpr (!requires { field.push_back({}); } || std::is_same_v<T, std::string>)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    entries_.back().option = option;
    return option;
  }

  // A flag without a value that sets `field` to `value`.
  CLI::Option* Switch(const std::string& names, bool& field, const std::string& help, bool value = true) {
    return app_.add_flag_callback(Register(names, "", help), [&field, value] { field = value; });
  }

  // A pair of flags without values; `names` set `field`, `off_names` clear it.
  CLI::Option* OnOff(const std::string& names, const std::string& off_names, bool& field, const std::string& help) {
    return app_.add_flag(Register(names, off_names, help), field)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  // The last added flag with this value is the same as without the flag.
  void SameAsDefault(const std::string& value) { entries_.back().default_values.insert(value); }

  // The last added flag may come without a value, which then is `value`.
  void ValueIfNone(const std::string& value) { entries_.back().implied = value; }

  // Fills the fields from the arguments, without the program's name, from the environment, and from the config file
  // that they name. kInvalidArgument says in one sentence what is wrong.
  Status Parse(int argc, const char* const* argv, const Environment& environment);

  // After Parse.
  bool help_wanted() const { return help_wanted_; }
  const std::vector<std::string>& notes() const { return notes_; }  // one line for each flag that changes nothing

  bool Has(const std::string& name) const { return spellings_.contains(name); }

  // The known flag that `flag` is a likely mistake for, or "".
  std::string Nearest(const std::string& flag) const;

  // All flags with their defaults, for a terminal and as the tables of docs/FLAGS.md.
  std::string Help() const;
  std::string MarkdownHelp() const;

 private:
  struct Entry {
    std::string group, names, help;
    CLI::Option* option = nullptr;              // null for flags without a value
    std::set<std::string> default_values = {};  // with one of these the flag says nothing
    std::string implied = "";                   // the value of the flag if it has none; "" = it must have one
    std::string Default() const;
  };

  // How a flag may be written.
  struct Spelling {
    size_t entry;
    std::string word;  // what CLI11 calls it
  };

  // A flag that CLI11 is to read.
  struct Given {
    std::vector<std::string> words;
    std::string variable;  // where it comes from; "" = the command line
  };

  std::string Register(const std::string& names, const std::string& off_names, const std::string& help);
  Status ReadArguments(std::span<const char* const> arguments);
  Status ReadEnvironment(const Environment& environment);
  Status ReadVariable(const LlamaFlag& flag, const std::string& value);
  Status ReadUnsupported(const LlamaFlag& flag, const std::string& shown, const std::string& value);
  bool IsGiven(const LlamaFlag& flag) const;
  void Give(const Spelling& spelling, const std::string* value, const std::string& variable);
  Status Unknown(const std::string& word) const;
  std::string VariableOf(const Entry& entry) const;

  CLI::App& app_;
  std::span<const LlamaFlag> llama_;
  std::string group_;
  std::vector<Entry> entries_;
  std::map<std::string, Spelling> spellings_;  // from "-ngl" to "--gpu-layers"

  // Of the last Parse.
  std::vector<Given> given_;
  std::set<size_t> given_entries_;
  std::vector<std::string> notes_;
  bool help_wanted_ = false;
};

// The minimum number of insertions, deletions and replacements that turn `a` into `b`.
int EditDistance(const std::string& a, const std::string& b);

}  // namespace outrider
