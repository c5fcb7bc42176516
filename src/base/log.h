// One line per event on standard error, and in a file if one is given: time, level letter, message.
//
// The default level (info) shows at most ten lines at start and one per finished request, or two where API keys are
// used (who asked, and what was generated); everything a developer would want besides is at debug. Thread-safe; a line
// is written by one write call, so lines of different threads never mix.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kNone };

struct LogFormat {
  bool time = true;
  bool level = true;  // its letter
};

void SetLogLevel(LogLevel lowest_shown);
void SetLogFormat(LogFormat format);

// Lines are appended to this file too, from now on. kInvalidArgument if it cannot be opened.
Status SetLogFile(const std::string& path);

bool LogEnabled(LogLevel level);
void LogLine(LogLevel level, std::string_view message);

template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kDebug)) LogLine(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kInfo)) LogLine(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kWarning)) LogLine(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(LogLevel::kError)) LogLine(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace outrider
