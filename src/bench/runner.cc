#include "bench/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

namespace outrider {
namespace {

constexpr int kMaxFailures = 3;  // of one variant in a row

// Asks all turns of one prompt, one after the other, from `question`'s turn on.
std::vector<BenchRecord> Converse(const BenchPlan& plan, const BenchVariant& variant, BenchQuestion question,
                                  const std::atomic<bool>& stop) {
  const BenchPrompt& prompt = plan.prompts[static_cast<size_t>(question.prompt)];
  std::vector<BenchRecord> records;
  std::vector<std::string> answers;
  for (; question.turn < static_cast<int>(prompt.turns.size()) && !stop; ++question.turn) {
    BenchRecord record;
    record.variant = variant.name;
    record.category = prompt.category;
    record.question = question;
    auto answer = variant.endpoint->Ask(RequestFor(plan, question, answers));
    if (stop) break;
    if (answer.ok()) {
      answers.push_back(answer->text);
      record.answer = std::move(*answer);
    } else {
      record.error = answer.status().message();
    }
    records.push_back(std::move(record));
    if (!records.back().error.empty()) break;
  }
  return records;
}

// Questions that are asked at the same time: the first turns of their conversations.
using Group = std::vector<BenchQuestion>;

std::vector<Group> GroupsOf(const BenchPlan& plan) {
  std::vector<Group> groups;
  const int prompts = static_cast<int>(plan.prompts.size());
  for (int run = 0; run < plan.runs; ++run) {
    for (const double temperature : plan.temperatures) {
      for (const int context : plan.contexts) {
        for (const int concurrency : plan.concurrencies) {
          for (int first = 0; first < prompts; first += concurrency) {
            Group& group = groups.emplace_back();
            for (int prompt = first; prompt < std::min(prompts, first + concurrency); ++prompt) {
              group.push_back({prompt, 0, run, temperature, context, concurrency});
            }
          }
        }
      }
    }
  }
  return groups;
}

// The energy of the whole group is shared out by tokens.
std::vector<BenchRecord> AskTogether(const BenchPlan& plan, const BenchVariant& variant, const Group& group,
                                     EnergyMeter& energy, const std::atomic<bool>& stop) {
  std::vector<std::vector<BenchRecord>> conversations(group.size());
  const double joules_before = energy.Joules();
  std::vector<std::thread> threads;
  for (size_t i = 1; i < group.size(); ++i) {
    threads.emplace_back([&, i] { conversations[i] = Converse(plan, variant, group[i], stop); });
  }
  conversations[0] = Converse(plan, variant, group[0], stop);
  for (std::thread& thread : threads) thread.join();
  const double joules = joules_before < 0 ? -1 : energy.Joules() - joules_before;

  std::vector<BenchRecord> records;
  double tokens = 0;
  for (std::vector<BenchRecord>& conversation : conversations) {
    for (BenchRecord& record : conversation) {
      tokens += record.answer.tokens;
      records.push_back(std::move(record));
    }
  }
  for (BenchRecord& record : records) {
    if (joules >= 0 && tokens > 0) record.joules = joules * record.answer.tokens / tokens;
  }
  return records;
}

}  // namespace

size_t BenchPlan::Requests() const {
  size_t turns = 0;
  for (const BenchPrompt& prompt : prompts) turns += prompt.turns.size();
  return turns * variants.size() * static_cast<size_t>(runs) * temperatures.size() * contexts.size() *
         concurrencies.size();
}

BenchRequest RequestFor(const BenchPlan& plan, const BenchQuestion& question, const std::vector<std::string>& answers) {
  const BenchPrompt& prompt = plan.prompts[static_cast<size_t>(question.prompt)];
  BenchRequest request;
  request.temperature = question.temperature;
  request.seed = static_cast<uint64_t>(question.run) + 1;
  request.max_tokens = plan.max_tokens;
  for (int turn = 0; turn <= question.turn; ++turn) {
    const auto at = static_cast<size_t>(turn);
    std::string said = prompt.turns[at];
    if (turn == 0 && question.context > 0) {
      said = fmt::format("Here is a text.\n\n{}\n\nThat was the text. Now to something else.\n\n{}",
                         Prose(question.context), said);
    }
    request.messages.push_back({"user", std::move(said)});
    if (turn < question.turn) request.messages.push_back({"assistant", at < answers.size() ? answers[at] : ""});
  }
  return request;
}

Status WarmUp(const BenchPlan& plan) {
  BenchRequest request;
  request.messages = {{"user", "Count from one to twenty, in words."}};
  request.max_tokens = 48;
  for (const BenchVariant& variant : plan.variants) {
    const auto answer = variant.endpoint->Ask(request);
    if (!answer.ok()) return Unavailable(fmt::format("'{}': {}", variant.name, answer.status().message()));
    if (answer->tokens == 0) {
      return Unavailable(fmt::format("'{}' does not report how many tokens it generates (stream_options.include_usage)",
                                     variant.name));
    }
  }
  return {};
}

Status RunBench(const BenchPlan& plan, EnergyMeter& energy, const std::function<void(BenchRecord)>& take,
                const std::atomic<bool>& stop) {
  std::map<std::string, int> failures;  // in a row, by variant
  size_t rotation = 0;
  for (const Group& group : GroupsOf(plan)) {
    for (size_t i = 0; i < plan.variants.size(); ++i) {
      if (stop) return {};
      const BenchVariant& variant = plan.variants[(i + rotation) % plan.variants.size()];
      Status status;
      for (BenchRecord& record : AskTogether(plan, variant, group, energy, stop)) {
        int& failed = failures[variant.name];
        failed = record.error.empty() ? 0 : failed + 1;
        if (failed >= kMaxFailures) status = Unavailable(fmt::format("'{}': {}", variant.name, record.error));
        take(std::move(record));
      }
      if (!status.ok()) return status;
    }
    ++rotation;
  }
  return {};
}

}  // namespace outrider
