#include "apps/machine_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

namespace outrider {
namespace {

// Sets an environment variable, or removes it, for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    Set(value);
  }
  ~Environment() { Set(before_ ? before_->c_str() : nullptr); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void Set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* const name_;
  std::optional<std::string> before_;
};

TEST(MachineCacheTest, IsBelowTheUsersCacheFolder) {
  const Environment home("HOME", "/home/me");
  {
    const Environment cache("XDG_CACHE_HOME", "/elsewhere");
    EXPECT_TRUE(MachineCachePath("kernels", "k").starts_with("/elsewhere/outrider/kernels/"));
  }
  for (const char* unset : {static_cast<const char*>(nullptr), ""}) {
    const Environment cache("XDG_CACHE_HOME", unset);
    EXPECT_TRUE(MachineCachePath("kernels", "k").starts_with("/home/me/.cache/outrider/kernels/"));
    const Environment no_home("HOME", unset);
    EXPECT_EQ(MachineCachePath("kernels", "k"), "") << "nowhere to keep it";
  }
}

TEST(MachineCacheTest, EveryKeyHasAFileOfItsOwn) {
  const Environment cache("XDG_CACHE_HOME", "/c");
  const std::string path = MachineCachePath("kernels", "one key");
  EXPECT_EQ(path, MachineCachePath("kernels", "one key")) << "the next start must find it";
  EXPECT_NE(path, MachineCachePath("kernels", "another key"));
  EXPECT_NE(path, MachineCachePath("exactness", "one key"));
  const std::string name = path.substr(path.rfind('/') + 1);
  EXPECT_EQ(name.size(), 16u);
  EXPECT_EQ(name.find_first_not_of("0123456789abcdef"), name.npos);
}

TEST(MachineCacheTest, NamesTheProcessor) {
  const std::string name = ProcessorName();
  EXPECT_NE(name.find(" x "), std::string::npos);
  EXPECT_EQ(name, ProcessorName());
  EXPECT_EQ(name.find('\n'), name.npos);
}

}  // namespace
}  // namespace outrider
