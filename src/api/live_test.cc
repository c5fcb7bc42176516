#include "api/live.h"

#include <gtest/gtest.h>

#include "api/api_test_util.h"

namespace outrider {
namespace {

TEST(LiveTest, TellsTheMetricsAsTheyAreAndTheRestAsJson) {
  const TestContext context;
  LiveState state;
  state.stats.generated_tokens = 42;
  state.slots = {{.id = 0, .busy = true, .generated_tokens = 7}};
  state.costs.curve = {{1, 0.0123456789, 0}, {2, 0.02, 0.12345678}};
  state.costs.context = 300;
  state.costs.last_rows = 2;
  state.draft_servers = {{"10.0.0.2:8090", true, 3, 0.0025}};
  state.memory = {5000};
  ServerInfo info;
  info.model_bytes = 1000;
  const Json live = LiveJson(state, {}, context.api, info);
  EXPECT_EQ(live["metrics"], MetricsText(state.stats));
  EXPECT_EQ(live["slots"][0]["next_token"][0]["n_decoded"], 7);
  EXPECT_EQ(live["costs"], Json::parse(R"({"context": 300, "last_rows": 2,
                                           "curve": [[1, 0.012346, 0.0], [2, 0.02, 0.1235]]})"));
  EXPECT_EQ(live["draft_servers"], Json::parse(R"([{"address": "10.0.0.2:8090", "usable": true, "streams": 3,
                                                   "answer_seconds": 0.0025}])"));
  EXPECT_EQ(live["memory"], (Json{{"resident", 5000}, {"model", 1000}}));
}

TEST(LiveTest, ThisProcessUsesMemory) {
  EXPECT_GT(ReadMemoryUse().resident_bytes, 1u << 20);
}

}  // namespace
}  // namespace outrider
