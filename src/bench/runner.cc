#include "bench/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>

namespace outrider {
namespace {

constexpr int kMostFailures = 3;  // in a row

// All turns of one prompt, one after the other.
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
                         Depth(question.context), said);
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
      return Unavailable(
          fmt::format("'{}' does not tell how many tokens it makes (stream_options.include_usage)", variant.name));
    }
  }
  return {};
}

Status RunBench(const BenchPlan& plan, EnergyMeter& energy, const std::function<void(BenchRecord)>& take,
                const std::atomic<bool>& stop) {
  std::map<std::string, int> failures;
  size_t turn = 0;
  const auto ask = [&](const BenchVariant& variant, const std::vector<BenchQuestion>& together) -> Status {
    std::vector<std::vector<BenchRecord>> records(together.size());
    const double before = energy.Joules();
    std::vector<std::thread> threads;
    for (size_t i = 1; i < together.size(); ++i) {
      threads.emplace_back([&, i] { records[i] = Converse(plan, variant, together[i], stop); });
    }
    records[0] = Converse(plan, variant, together[0], stop);
    for (std::thread& thread : threads) thread.join();
    const double joules = before < 0 ? -1 : energy.Joules() - before;
    double tokens = 0;
    for (const auto& each : records) {
      for (const BenchRecord& record : each) tokens += record.answer.tokens;
    }
    Status status;
    for (auto& each : records) {
      for (BenchRecord& record : each) {
        if (joules >= 0 && tokens > 0) record.joules = joules * record.answer.tokens / tokens;
        int& failed = failures[variant.name];
        failed = record.error.empty() ? 0 : failed + 1;
        if (failed >= kMostFailures) status = Unavailable(fmt::format("'{}': {}", variant.name, record.error));
        take(std::move(record));
      }
    }
    return status;
  };
  for (int run = 0; run < plan.runs; ++run) {
    for (const double temperature : plan.temperatures) {
      for (const int context : plan.contexts) {
        for (const int concurrency : plan.concurrencies) {
          for (size_t first = 0; first < plan.prompts.size(); first += static_cast<size_t>(concurrency)) {
            std::vector<BenchQuestion> together;
            const size_t end = std::min(plan.prompts.size(), first + static_cast<size_t>(concurrency));
            for (size_t prompt = first; prompt < end; ++prompt) {
              together.push_back({static_cast<int>(prompt), 0, run, temperature, context, concurrency});
            }
            for (size_t i = 0; i < plan.variants.size(); ++i) {
              if (stop) return {};
              const BenchVariant& variant = plan.variants[(i + turn) % plan.variants.size()];
              if (Status status = ask(variant, together); !status.ok()) return status;
            }
            ++turn;
          }
        }
      }
    }
  }
  return {};
}

}  // namespace outrider
