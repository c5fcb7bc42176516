#include "apps/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/secrets.h"

namespace outrider {
namespace {

std::string Quoted(std::string word) {
  if (!word.empty() && word.find_first_of(" \t\n\"'$&|;<>*?()#!`\\") == word.npos) return word;
  for (size_t at = 0; (at = word.find('\'', at)) != word.npos; at += 4) word.replace(at, 1, "'\\''");
  return "'" + word + "'";
}

}  // namespace

Result<std::vector<std::string>> SplitWords(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return InvalidArgument(fmt::format("a quote is not closed in '{}'", HideSecrets(line)));
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string PrintableCommandLine(const std::vector<std::string>& words) {
  std::string line;
  bool secret = false;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = i == 0 ? std::filesystem::path(words[i]).filename().string() : words[i];
    if (std::exchange(secret, TakesSecret(word))) word = "...";
    line += (i == 0 ? "" : " ") + Quoted(HideSecrets(word));
  }
  return line;
}

std::vector<std::string> OwnCommandLine() {
  const std::string bytes = ReadFile("/proc/self/cmdline").value_or("");
  std::vector<std::string> words;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', begin), bytes.size());
    words.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

}  // namespace outrider
