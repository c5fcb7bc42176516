#include "base/log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

namespace outrider {
namespace {

TEST(LogTest, LinesGoToTheFileTooInTheFormatAskedFor) {
  const std::string path = testing::TempDir() + "/log_test.log";
  std::filesystem::remove(path);
  ASSERT_TRUE(SetLogFile(path).ok());
  SetLogFormat({.time = false, .level = false});
  LogInfo("one {}", 1);
  SetLogFormat({.time = false, .level = true});
  LogWarning("two");
  SetLogLevel(LogLevel::kNone);
  LogError("not shown");
  SetLogLevel(LogLevel::kInfo);
  SetLogFormat({});
  LogError("three");
  const std::string text = ReadFile(path).value_or("");
  EXPECT_TRUE(text.starts_with("one 1\nW two\n")) << text;
  EXPECT_TRUE(text.ends_with(" E three\n")) << text;
  EXPECT_EQ(text.find("not shown"), text.npos);
  EXPECT_FALSE(SetLogFile("/nowhere/log").ok());
}

}  // namespace
}  // namespace outrider
