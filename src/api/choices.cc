#include "api/choices.h"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "api/fields.h"

namespace outrider {
namespace {

class ChoicesWriter : public ResponseWriter {
 public:
  ChoicesWriter(std::vector<std::unique_ptr<ResponseWriter>> writers, std::function<Json(std::vector<Json>)> merge)
      : writers_(std::move(writers)), merge_(std::move(merge)) {}

  std::string Append(const Chunk& chunk) override { return writers_[static_cast<size_t>(chunk.choice)]->Append(chunk); }

  Json Whole() override {
    std::vector<Json> answers;
    for (const auto& writer : writers_) answers.push_back(writer->Whole());
    return merge_(std::move(answers));
  }

  std::string ErrorEvent(const Status& status) const override { return writers_[0]->ErrorEvent(status); }

 private:
  const std::vector<std::unique_ptr<ResponseWriter>> writers_;
  const std::function<Json(std::vector<Json>)> merge_;
};

uint64_t NewFamily() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Status ReadChoiceCount(const Json& body, int* n) {
  FieldReader fields(body);
  fields.Int("n_cmpl", 1, kMaxChoices, n);
  fields.Int("n", 1, kMaxChoices, n);
  return fields.status();
}

Status RefuseChoices(const Json& body) {
  int n = 1;
  if (const Status status = ReadChoiceCount(body, &n); !status.ok()) return status;
  return n == 1 ? Status() : InvalidArgument("this endpoint gives one answer to a request", "n");
}

void ChoiceSum::Add(int index, const GenerationTimings& timings) {
  --open_;
  timings_.generated_tokens += timings.generated_tokens;
  if (index % n_ != 0) return;
  timings_.prompt_tokens += timings.prompt_tokens;
  timings_.cached_tokens += timings.cached_tokens;
}

Result<ParsedRequest> WithChoices(std::vector<GenerationRequest> prompts, int n, bool stream,
                                  const ChoiceFormat& format) {
  if (prompts.size() > static_cast<size_t>(kMaxChoices / n)) {
    return InvalidArgument(fmt::format("{} prompts with {} answers each are more than the {} answers that a request "
                                       "may ask for",
                                       prompts.size(), n, kMaxChoices),
                           "prompt");
  }
  ParsedRequest parsed;
  parsed.stream = stream;
  std::vector<std::unique_ptr<ResponseWriter>> writers;
  for (GenerationRequest& prompt : prompts) {
    if (n > 1) prompt.family = NewFamily();
    for (int i = 0; i < n; ++i) {
      GenerationRequest request = prompt;
      request.sampling.seed += static_cast<uint64_t>(i);
      writers.push_back(format.make_writer(request, static_cast<int>(writers.size())));
      if (writers.size() == 1) {
        parsed.generation = std::move(request);
      } else {
        parsed.more.push_back(std::move(request));
      }
    }
  }
  parsed.writer =
      writers.size() == 1 ? std::move(writers[0]) : std::make_unique<ChoicesWriter>(std::move(writers), format.merge);
  return parsed;
}

}  // namespace outrider
