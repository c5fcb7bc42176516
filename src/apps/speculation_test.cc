#include "apps/speculation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace outrider {
namespace {

SpeculationSettings Drafters(std::vector<std::string> lists) {
  SpeculationSettings settings;
  settings.drafters = std::move(lists);
  return settings;
}

// The drafters as "name:value,key=value …", or the error.
std::string Describe(const SpeculationSettings& settings, bool target_has_head = false) {
  const auto choices = ChooseDrafters(settings, target_has_head);
  if (!choices.ok()) return "error: " + choices.status().message();
  std::string text;
  for (const DrafterChoice& choice : *choices) {
    text += (text.empty() ? "" : " ") + choice.name;
    char separator = ':';
    for (const std::string& value : choice.values) text += std::exchange(separator, ',') + value;
    for (const auto& [key, value] : choice.parameters) text += std::exchange(separator, ',') + key + "=" + value;
  }
  return text;
}

TEST(ChooseDraftersTest, AutoIsSuffixAndNGramsAndTheDraftModelIfThereIsOne) {
  EXPECT_EQ(Describe(SpeculationSettings()), "suffix ngram-map-k");
  SpeculationSettings settings;
  settings.draft_model.path = "d.gguf";
  EXPECT_EQ(Describe(settings), "suffix ngram-map-k model");
  settings.drafters = {"ngram-mod"};
  EXPECT_EQ(Describe(settings), "ngram-mod model");
  settings.drafters = {"model", "auto"};
  EXPECT_EQ(Describe(settings), "model suffix ngram-map-k") << "once, where it was named";
  EXPECT_EQ(Describe(Drafters({"suffix,auto"})), "suffix ngram-map-k");
}

TEST(ChooseDraftersTest, AutoUsesTheHeadOfTheTarget) {
  EXPECT_EQ(Describe(SpeculationSettings(), true), "suffix ngram-map-k mtp");
  EXPECT_EQ(Describe(Drafters({"mtp:window=9", "auto"}), true), "mtp:window=9 suffix ngram-map-k");
  for (const char* name : {"none", "suffix"}) EXPECT_FALSE(WantsHeadOfTarget(Drafters({name}))) << name;
  for (const char* name : {"auto", "mtp", "suffix,mtp"}) EXPECT_TRUE(WantsHeadOfTarget(Drafters({name}))) << name;
}

TEST(ChooseDraftersTest, NoneSwitchesEverythingOff) {
  for (const char* name : {"none", "off"}) {
    SpeculationSettings settings = Drafters({name});
    settings.draft_model.path = "d.gguf";
    EXPECT_EQ(Describe(settings), "") << name;
    EXPECT_TRUE(Describe(Drafters({name, "suffix"})).starts_with("error: ")) << name;
    EXPECT_TRUE(Describe(Drafters({std::string("suffix,") + name})).starts_with("error: ")) << name;
  }
}

TEST(ChooseDraftersTest, AListMayHaveParametersWithCommas) {
  EXPECT_EQ(Describe(Drafters({"suffix,ngram-mod:n_match=16,n_max=32,ngram-simple"})),
            "suffix ngram-mod:n_match=16,n_max=32 ngram-simple");
  EXPECT_EQ(Describe(Drafters({"suffix", "ngram-simple:size_n=8"})), "suffix ngram-simple:size_n=8");
}

TEST(ChooseDraftersTest, AddressesBelongToTheDrafterBeforeThem) {
  EXPECT_EQ(Describe(Drafters({"remote:a:8090,b:8091,token=x,suffix"})), "remote:a:8090,b:8091,token=x suffix");
  EXPECT_EQ(Describe(Drafters({"remote:[::1]:8090,[fe80::1]:1"})), "remote:[::1]:8090,[fe80::1]:1");
  EXPECT_EQ(Describe(Drafters({"suffix,remote:a:8090"})), "suffix remote:a:8090")
      << "a name with an address is a drafter of its own";
  EXPECT_EQ(Describe(Drafters({"remote:a:8090,ngram-mod:n_max=8"})), "remote:a:8090 ngram-mod:n_max=8")
      << "a name with parameters is not an address";
}

TEST(ChooseDraftersTest, NamesOfLlamaServerAreUnderstood) {
  EXPECT_EQ(Describe(Drafters({"draft-simple"})), "model");
}

TEST(ChooseDraftersTest, SaysWhatIsWrong) {
  EXPECT_EQ(Describe(Drafters({"suffix,suffix"})), "error: --spec names 'suffix' twice");
  EXPECT_EQ(Describe(Drafters({"auto", "suffix:x=1"})), "error: --spec names 'suffix' twice");
  EXPECT_TRUE(Describe(Drafters({":x=1"})).starts_with("error: "));
}

TEST(ChooseDraftersTest, LookupCachesChooseTheirDrafter) {
  SpeculationSettings settings;
  settings.lookup_cache_static = "s.bin";
  EXPECT_EQ(Describe(settings), "suffix ngram-map-k ngram-cache:static=s.bin");
  settings.drafters = {"ngram-cache", "suffix"};
  settings.lookup_cache_dynamic = "d.bin";
  EXPECT_EQ(Describe(settings), "ngram-cache:dynamic=d.bin,static=s.bin suffix");
}

}  // namespace
}  // namespace outrider
