#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "api/info.h"

namespace outrider {
namespace {

// Samples by name with labels. Fails the test on lines that are not Prometheus text, and on samples without HELP, TYPE.
std::map<std::string, double> ParseMetrics(const std::string& text) {
  std::map<std::string, double> samples;
  std::string helped, typed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, second, third;
    words >> first >> second >> third;
    if (first == "#") {
      EXPECT_TRUE(second == "HELP" || second == "TYPE") << line;
      (second == "HELP" ? helped : typed) = third;
      continue;
    }
    EXPECT_EQ(first.rfind(helped, 0), 0u) << line;
    EXPECT_EQ(helped, typed) << line;
    EXPECT_TRUE(samples.emplace(first, std::stod(second)).second) << "twice: " << line;
  }
  return samples;
}

TEST(MetricsTest, TellsAllCounters) {
  SchedulerStats stats;
  stats.finished = {10, 11, 12, 13, 14, 15};
  stats.refused = 2;
  stats.prompt_tokens = 300;
  stats.cached_tokens = 4;
  stats.generated_tokens = 18446744073709551615u;
  stats.prompt_seconds = 1.5;
  stats.generate_seconds = 0.25;
  stats.steps = 7;
  stats.lookahead_steps = 5;
  stats.adapter_requests = {3, 4};
  stats.adapter_switches = 6;
  stats.rows = 8;
  stats.busy_slots = 14;
  stats.longest = 50;
  stats.running = 3;
  stats.queued = 1;
  const std::string text = MetricsText(stats);
  const auto samples = ParseMetrics(text);
  EXPECT_EQ(samples.at("llamacpp:prompt_tokens_total"), 300);
  EXPECT_EQ(samples.at("llamacpp:prompt_tokens_cached_total"), 4);
  EXPECT_EQ(samples.at("llamacpp:prompt_seconds_total"), 1.5);
  EXPECT_EQ(samples.at("llamacpp:prompt_tokens_seconds"), 200);
  EXPECT_EQ(samples.at("llamacpp:tokens_predicted_seconds_total"), 0.25);
  EXPECT_EQ(samples.at("llamacpp:n_decode_total"), 7);
  EXPECT_EQ(samples.at("llamacpp:requests_processing"), 3);
  EXPECT_EQ(samples.at("llamacpp:requests_deferred"), 1);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"end_of_text\"}"), 10);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"stop_string\"}"), 11);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"length\"}"), 12);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"time_limit\"}"), 13);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"cancelled\"}"), 14);
  EXPECT_EQ(samples.at("outrider_requests_finished_total{reason=\"error\"}"), 15);
  EXPECT_EQ(samples.at("outrider_requests_refused_total"), 2);
  EXPECT_EQ(samples.at("outrider_rows_total"), 8);
  EXPECT_EQ(samples.at("llamacpp:n_busy_slots_per_decode"), 2);
  EXPECT_EQ(samples.at("llamacpp:n_tokens_max"), 50);
  EXPECT_EQ(samples.at("outrider_lookahead_steps_total"), 5);
  EXPECT_EQ(samples.at("outrider_adapter_requests_total{adapter=\"1\"}"), 4);
  EXPECT_EQ(samples.at("outrider_adapter_switches_total"), 6);
  EXPECT_NE(text.find("\nllamacpp:tokens_predicted_total 18446744073709551615\n"), std::string::npos);
  EXPECT_EQ(text.back(), '\n');
}

TEST(MetricsTest, HistogramsAreCumulative) {
  SchedulerStats stats;
  for (const double seconds : {0.001, 0.002, 0.5, 100.0}) stats.step_seconds.Observe(seconds);
  const auto samples = ParseMetrics(MetricsText(stats));
  EXPECT_EQ(samples.at("outrider_step_seconds_bucket{le=\"0.001\"}"), 1);
  EXPECT_EQ(samples.at("outrider_step_seconds_bucket{le=\"0.0025\"}"), 2);
  EXPECT_EQ(samples.at("outrider_step_seconds_bucket{le=\"0.25\"}"), 2);
  EXPECT_EQ(samples.at("outrider_step_seconds_bucket{le=\"2.5\"}"), 3);
  EXPECT_EQ(samples.at("outrider_step_seconds_bucket{le=\"+Inf\"}"), 4);
  EXPECT_EQ(samples.at("outrider_step_seconds_count"), 4);
  EXPECT_DOUBLE_EQ(samples.at("outrider_step_seconds_sum"), 100.503);
  EXPECT_EQ(samples.at("outrider_first_token_seconds_count"), 0);
}

TEST(MetricsTest, EachDistributionHasItsOwnName) {
  SchedulerStats stats;
  stats.first_token_seconds.Observe(1);
  for (int i = 0; i < 2; ++i) stats.accepted_length.Observe(1);
  for (int i = 0; i < 3; ++i) stats.step_rows.Observe(1);
  for (int i = 0; i < 4; ++i) stats.step_cost_ratio.Observe(1);
  for (int i = 0; i < 5; ++i) stats.step_seconds.Observe(1);
  const auto samples = ParseMetrics(MetricsText(stats));
  EXPECT_EQ(samples.at("outrider_first_token_seconds_count"), 1);
  EXPECT_EQ(samples.at("outrider_accepted_length_count"), 2);
  EXPECT_EQ(samples.at("outrider_step_rows_count"), 3);
  EXPECT_EQ(samples.at("outrider_step_cost_ratio_count"), 4);
  EXPECT_EQ(samples.at("outrider_step_seconds_count"), 5);
}

TEST(MetricsTest, NothingYetMeansZeroes) {
  for (const auto& [name, value] : ParseMetrics(MetricsText({}))) {
    EXPECT_EQ(value, name == "outrider_speed_up" ? 1 : 0) << name;
  }
}

TEST(MetricsTest, DraftersAreToldApart) {
  SchedulerStats stats;
  stats.drafters = {{"suffix", 10, 8, 0.5}, {"model", 4, 1, 2}};
  stats.speed_up = 1.5;
  auto samples = ParseMetrics(MetricsText(stats));
  EXPECT_EQ(samples.at("outrider_draft_tokens_proposed_total{drafter=\"suffix\"}"), 10);
  EXPECT_EQ(samples.at("outrider_draft_tokens_proposed_total{drafter=\"model\"}"), 4);
  EXPECT_EQ(samples.at("outrider_draft_tokens_accepted_total{drafter=\"suffix\"}"), 8);
  EXPECT_EQ(samples.at("outrider_draft_tokens_accepted_total{drafter=\"model\"}"), 1);
  EXPECT_EQ(samples.at("outrider_draft_seconds_total{drafter=\"suffix\"}"), 0.5);
  EXPECT_EQ(samples.at("outrider_speed_up"), 1.5);
  EXPECT_EQ(samples.at("llamacpp:spec_decode_num_draft_tokens_total"), 14) << "of all drafters";
  EXPECT_EQ(samples.at("llamacpp:spec_decode_num_accepted_tokens_total"), 9);
  EXPECT_EQ(samples.at("outrider_draft_seconds_total{drafter=\"model\"}"), 2);
}

}  // namespace
}  // namespace outrider
