#include "apps/serve_checks.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace outrider {
namespace {

TEST(ServeChecksTest, KeysComeFromFlagsAndFromAFile) {
  ServeOptions options;
  options.api_keys = {"one"};
  options.admin_keys = {"boss"};
  options.api_key_file = testing::TempDir() + "/serve_checks_keys";
  ASSERT_TRUE(KeepFile(options.api_key_file, "two\nthree\n").ok());
  const auto keys = CollectApiKeys(options);
  ASSERT_TRUE(keys.ok()) << keys.status().message();
  ASSERT_EQ(keys->size(), 4u);
  const ApiKeys found(*keys);
  for (const char* key : {"one", "boss", "two", "three"}) {
    ASSERT_NE(found.Find("", key), nullptr) << key;
    EXPECT_EQ(found.Find("", key)->admin, std::string(key) == "boss") << key;
  }
  options.api_key_file += ".none";
  EXPECT_NE(CollectApiKeys(options).status().message().find(options.api_key_file), std::string::npos);
  options.api_key_file = "";
  options.api_keys = {"one", ""};
  EXPECT_EQ(CollectApiKeys(options).status().message(), "--api-key is empty");
  options.api_keys = {"one", "boss"};
  EXPECT_FALSE(CollectApiKeys(options).ok()) << "is one key an admin's or not?";
}

TEST(ServeChecksTest, OtherMachinesNeedAKeyUnlessItIsSaidThatTheyDoNot) {
  ServeOptions options;
  for (const char* local : {"127.0.0.1", "localhost", "::1"}) {
    options.http.host = local;
    EXPECT_TRUE(CollectApiKeys(options).ok()) << local;
  }
  for (const char* open : {"0.0.0.0", "::", "192.168.1.7", "example.com"}) {
    options.http.host = open;
    options.api_keys = {};
    options.allow_no_keys = false;
    const auto refused = CollectApiKeys(options);
    ASSERT_FALSE(refused.ok()) << open;
    EXPECT_NE(refused.status().message().find(open), std::string::npos);
    options.allow_no_keys = true;
    EXPECT_TRUE(CollectApiKeys(options).ok()) << open;
    options.allow_no_keys = false;
    options.api_keys = {"key"};
    EXPECT_TRUE(CollectApiKeys(options).ok()) << open;
  }
}

TEST(ServeChecksTest, TlsNeedsAKeyAndItsCertificate) {
  ServeOptions options;
  ASSERT_TRUE(LoadTls(options).ok());
  EXPECT_EQ(*LoadTls(options), nullptr);
  options.tls_key_file = "/nowhere/key.pem";
  EXPECT_EQ(LoadTls(options).status().message(), "--ssl-key-file needs --ssl-cert-file");
  options.tls_certificate_file = "/proc/self/cmdline";
  EXPECT_TRUE(LoadTls(options).status().message().starts_with("--ssl-cert-file '/proc/self/cmdline' is not"));
  options.tls_key_file = "";
  EXPECT_EQ(LoadTls(options).status().message(), "--ssl-cert-file needs --ssl-key-file");
}

TEST(ServeChecksTest, APrefixOfPathsIsPlain) {
  for (const char* good : {"", "/llm", "/v2/models/my-model"}) EXPECT_TRUE(CheckPathPrefix(good).ok()) << good;
  for (const char* bad : {"llm", "/llm/", "/", "/a b", "/a?b", "/%41"}) EXPECT_FALSE(CheckPathPrefix(bad).ok()) << bad;
}

TEST(ServeChecksTest, ATemplateIsNotAName) {
  for (const char* good : {"", "chatml", "{{ messages[0].content }}", "Just this text"}) {
    EXPECT_TRUE(CheckChatTemplate(good).ok()) << good;
  }
  for (const char* bad : {"llama3", "command-r", "template.jinja"}) EXPECT_FALSE(CheckChatTemplate(bad).ok()) << bad;
}

TEST(ServeChecksTest, SlotsAreSavedInADirectoryThatExists) {
  EXPECT_TRUE(CheckSlotDirectory("").ok());
  EXPECT_TRUE(CheckSlotDirectory(testing::TempDir()).ok());
  EXPECT_FALSE(CheckSlotDirectory("/nowhere").ok());
  EXPECT_FALSE(CheckSlotDirectory("/proc/self/cmdline").ok()) << "a file";
  EXPECT_FALSE(CheckSlotDirectory(std::string(5000, 'x')).ok()) << "longer than any path";
}

TEST(ServeChecksTest, AReplicaNeedsARemoteDrafter) {
  ServeOptions options;
  EXPECT_TRUE(CheckSpeculation(options).ok());
  options.replica = {"none"};
  EXPECT_FALSE(CheckSpeculation(options).ok());
  options.speculation.drafters = {"suffix", "remote:127.0.0.1:8090"};
  EXPECT_TRUE(CheckSpeculation(options).ok());
  options.http.slot_files.folder = testing::TempDir();
  EXPECT_FALSE(CheckSpeculation(options).ok()) << "a slot's state is that of one copy";
  options = ServeOptions();
  options.speculation.drafters = {"suffix,suffix"};
  EXPECT_FALSE(CheckSpeculation(options).ok());
}

}  // namespace
}  // namespace outrider
