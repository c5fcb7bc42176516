#include "bench/difference.h"

#include <fmt/format.h>

#include "base/json.h"

namespace outrider {
namespace {

constexpr size_t kQuotedBytes = 24;

// What a variant said in the conversation of `question`, up to that turn.
std::vector<std::string> AnswersUpTo(const BenchQuestion& question, const std::string& variant,
                                     const std::vector<BenchRecord>& records) {
  std::vector<std::string> answers;
  for (const BenchRecord& record : records) {
    BenchQuestion same_turn = record.question;
    same_turn.turn = question.turn;
    if (record.variant != variant || !record.error.empty()) continue;
    if (same_turn == question && record.question.turn <= question.turn) answers.push_back(record.answer.text);
  }
  return answers;
}

}  // namespace

std::string ExplainDifference(const BenchPlan& plan, const std::vector<BenchRecord>& records,
                              const BenchVariantSummary& variant, Endpoint& first) {
  const BenchDifference& difference = variant.with_first.differences.front();
  const BenchQuestion& question = difference.question;
  const std::string& first_name = plan.variants.front().name;
  std::vector<std::string> answers = AnswersUpTo(question, first_name, records);
  const std::vector<std::string> others = AnswersUpTo(question, variant.name, records);
  if (answers.empty() || others.empty()) return "";
  const std::string sentence =
      fmt::format("First in prompt {} after {} bytes: {} says {}, {} says {}.", question.prompt + 1,
                  difference.position, first_name, DumpJson(answers.back().substr(difference.position, kQuotedBytes)),
                  variant.name, DumpJson(others.back().substr(difference.position, kQuotedBytes)));
  // Above temperature 0 the random draw decides, not the probabilities alone.
  if (question.temperature > 0) return sentence;
  answers.pop_back();  // the answer to the turn that is asked again
  const auto tokens = first.AskProbabilities(RequestFor(plan, question, answers));
  if (!tokens.ok()) return sentence;
  size_t at = 0;
  for (const RankedToken& token : *tokens) {
    if (at + token.text.size() > difference.position) {
      return sentence + fmt::format(" Token {} against {}: the two best logits are {:.4f} apart.", DumpJson(token.text),
                                    DumpJson(token.runner_up), token.gap);
    }
    at += token.text.size();
  }
  return sentence;
}

}  // namespace outrider
