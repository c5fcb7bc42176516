// POST /v1/completions: text in, text out, without a chat template.
#include <algorithm>
#include <map>
#include <numeric>

#include "api/answer_fields.h"
#include "api/choices.h"
#include "api/fields.h"
#include "api/generation_fields.h"
#include "api/logprobs.h"
#include "api/openai_common.h"
#include "api/prepare.h"

namespace outrider {
namespace {

// "best_of": of so many answers to each prompt the `n` are given whose tokens have the highest mean log probability.
class Ranking {
 public:
  Ranking(int best_of, int n) : best_of_(best_of), n_(n) {}

  bool needed() const { return best_of_ > n_; }

  void Add(int index, const std::vector<GeneratedToken>& tokens) {
    Sum& sum = sums_[index];
    for (const GeneratedToken& token : tokens) sum.logprob += token.logprob;
    sum.tokens += tokens.size();
  }

  // Of all answers, in their order; each gets its index anew.
  std::vector<Json> Choose(std::vector<Json> answers) {
    std::vector<Json> chosen;
    for (int first = 0; first < static_cast<int>(answers.size()); first += best_of_) {
      std::vector<int> order(static_cast<size_t>(best_of_));
      std::iota(order.begin(), order.end(), first);
      std::stable_sort(order.begin(), order.end(), [this](int a, int b) { return sums_[a].Mean() > sums_[b].Mean(); });
      for (int i = 0; i < n_; ++i) {
        chosen.push_back(std::move(answers[static_cast<size_t>(order[static_cast<size_t>(i)])]));
        chosen.back()["choices"][0]["index"] = chosen.size() - 1;
      }
    }
    return chosen;
  }

 private:
  struct Sum {
    double logprob = 0;
    size_t tokens = 0;
    double Mean() const { return tokens == 0 ? 0 : logprob / static_cast<double>(tokens); }
  };

  const int best_of_, n_;
  std::map<int, Sum> sums_;  // by index of the answer
};

class TextCompletionWriter : public ResponseWriter {
 public:
  // `logprobs`: alternatives to report; -1 = no logprobs at all.
  TextCompletionWriter(int logprobs, int index, std::shared_ptr<OpenAiAnswer> answer, std::shared_ptr<Ranking> ranking,
                       const GenerationRequest& request, const ApiContext& context)
      : logprobs_(logprobs),
        index_(index),
        answer_(std::move(answer)),
        ranking_(std::move(ranking)),
        tokenizer_(context.tokenizer) {
    if (answer_->options.verbose) verbose_.emplace(LlamaAnswerOptions{index}, request, context);
  }

  std::string Append(const Chunk& chunk) override {
    if (logprobs_ >= 0) tokens_.insert(tokens_.end(), chunk.tokens.begin(), chunk.tokens.end());
    if (ranking_->needed()) ranking_->Add(index_, chunk.tokens);
    if (chunk.completion) completion_ = *chunk.completion;
    if (verbose_) verbose_->Observe(chunk);
    if (verbose_ || !answer_->options.stream) text_ += chunk.text;
    if (!answer_->options.stream) return "";
    std::string events;
    for (const PromptProgress& progress : chunk.progress) {
      events += ChunkEvent("", nullptr, {{"prompt_progress", ProgressJson(progress)}});
    }
    Json timings = Json::object();
    if (answer_->options.timings_per_token) timings["timings"] = TimingsJson(chunk.timings);
    if (!chunk.text.empty()) events += ChunkEvent(chunk.text, nullptr, timings);
    if (chunk.completion) events += LastEvents();
    return events;
  }

  Json Whole() override {
    Json answer = MakeObject(answer_->whole, text_, OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    answer_->FinishWhole(index_, completion_, &answer);
    if (verbose_) answer["__verbose"] = verbose_->Last(text_, {});
    return answer;
  }

  std::string ErrorEvent(const Status& status) const override { return SseEvent("", OpenAiError(status)); }

 private:
  Json MakeObject(const char* object, const std::string& text, Json finish_reason) {
    Json logprobs;
    if (logprobs_ >= 0) logprobs = LegacyLogprobs(tokens_, tokenizer_, logprobs_ > 0, &offset_);
    tokens_.clear();
    return answer_->envelope.Make(object, {{"index", index_},
                                           {"text", text},
                                           {"logprobs", std::move(logprobs)},
                                           {"finish_reason", std::move(finish_reason)}});
  }

  std::string ChunkEvent(const std::string& text, Json finish_reason, const Json& more = Json::object()) {
    const bool last = !finish_reason.is_null();
    Json event = MakeObject(answer_->event, text, std::move(finish_reason));
    if (answer_->options.include_usage) event["usage"] = nullptr;
    if (last) AddOurs(completion_, &event);
    if (last && verbose_) event["__verbose"] = verbose_->Last(text_, {});
    event.update(more);
    return SseEvent("", event);
  }

  std::string LastEvents() {
    std::string events = ChunkEvent("", OpenAiFinishReason(completion_, /*has_tool_calls=*/false));
    return events += answer_->EndOfChoice(index_, completion_);
  }

  const int logprobs_;
  const int index_;
  const std::shared_ptr<OpenAiAnswer> answer_;
  const std::shared_ptr<Ranking> ranking_;
  const Tokenizer& tokenizer_;
  std::optional<LlamaAnswer> verbose_;
  std::string text_;  // not kept if nothing needs it
  std::vector<GeneratedToken> tokens_;
  size_t offset_ = 0;  // characters of the text whose logprobs were reported
  Completion completion_;
};

Status RefuseUnsupported(const Json& body) {
  FieldReader fields(body);
  bool echo = false;
  std::string suffix;
  fields.Bool("echo", &echo);
  fields.String("suffix", &suffix);
  if (echo) fields.Fail("echo", "is not supported");
  if (!suffix.empty())
    fields.Fail("suffix", "is not supported here; /infill writes text between a prefix and a suffix");
  return fields.status();
}

// `n`: answers to each prompt; `best_of`: as many, or more of which the best are given.
Status ReadBestOf(const Json& body, bool stream, int n, int* best_of) {
  FieldReader fields(body);
  *best_of = n;
  fields.Int("best_of", 1, kMaxChoices, best_of);
  if (*best_of < n) fields.Fail("best_of", "must be at least n");
  if (*best_of > n && stream) fields.Fail("best_of", "cannot be streamed: the best answers are known only at the end");
  return fields.status();
}

}  // namespace

Result<ParsedRequest> ParseTextCompletion(const Json& body, const std::string& owner, const ApiContext& context) {
  AnswerOptions options;
  int n = 1, best_of = 1, logprobs = -1;
  FieldReader fields(body);
  fields.Int("logprobs", 0, kMaxTopLogprobs, &logprobs);
  if (!fields.status().ok()) return fields.status();
  if (const Status status = RefuseUnsupported(body); !status.ok()) return status;
  if (const Status status = ReadAnswerOptions(body, context, &options); !status.ok()) return status;
  if (const Status status = ReadChoiceCount(body, &n); !status.ok()) return status;
  if (const Status status = ReadBestOf(body, options.stream, n, &best_of); !status.ok()) return status;
  const auto ranking = std::make_shared<Ranking>(best_of, n);

  GenerationRequest request;
  request.owner = owner;
  request.top_logprobs = ranking->needed() ? std::max(logprobs, 0) : logprobs;
  request.report_progress = options.stream && options.return_progress;
  const Status limit =
      ReadMaxTokens(body, {"max_tokens", "n_predict"}, MaxTokensLimits::kFromMinusOne, context, &request);
  if (!limit.ok()) return limit;
  Result<std::vector<GenerationRequest>> prompts = PrepareTexts(body, context, std::move(request));
  if (!prompts.ok()) return prompts.status();
  const auto answer = std::make_shared<OpenAiAnswer>("cmpl-", "text_completion", "text_completion", options, context,
                                                     static_cast<int>(prompts->size()) * best_of, best_of);
  return WithChoices(
      std::move(*prompts), best_of, options.stream,
      {.make_writer =
           [&](const GenerationRequest& choice, int index) {
             return std::make_unique<TextCompletionWriter>(logprobs, index, answer, ranking, choice, context);
           },
       .merge = [answer,
                 ranking](std::vector<Json> answers) { return answer->Merge(ranking->Choose(std::move(answers))); }});
}

}  // namespace outrider
