#include "bench/answer_reader.h"

#include <chrono>

#include "base/utf8.h"
#include "bench/json_fields.h"

namespace outrider {
namespace {

constexpr size_t kMaxBytes = 256 << 20;
constexpr size_t kMaxRawBytes = 4096;

}  // namespace

const Json& FirstChoice(const Json& answer) {
  static const Json nothing;
  const Json& choices = Field(answer, "choices");
  return choices.is_array() && !choices.empty() ? choices[0] : nothing;
}

std::string ErrorMessage(const std::string& body) {
  const auto json = ParseJson(body);
  std::string message;
  if (json.ok()) {
    const Json& error = Field(*json, "error");
    message = error.is_string() ? error.get<std::string>() : TextOf(Field(error, "message"));
  }
  return OneLine(message.empty() ? body : message, 200);
}

AnswerReader::AnswerReader(const Clock& clock)
    : clock_(clock), start_(clock.Now()), reader_([this](std::string_view data) { Take(data); }) {}

bool AnswerReader::Feed(std::string_view bytes) {
  if (raw_.size() < kMaxRawBytes) raw_ += bytes;
  total_ += bytes.size();
  return reader_.Feed(bytes) && total_ <= kMaxBytes;
}

double AnswerReader::SecondsSinceSent() const {
  return std::chrono::duration<double>(clock_.Now() - start_).count();
}

void AnswerReader::Take(std::string_view data) {
  if (data == "[DONE]") {
    done_ = true;
    return;
  }
  const auto event = ParseJson(data);
  if (!event.ok()) return;
  if (!Field(*event, "error").is_null()) error_ = ErrorMessage(std::string(data));
  const Json& choice = FirstChoice(*event);
  const Json& delta = Field(choice, "delta");
  const std::string text = TextOf(Field(delta, "reasoning_content")) + TextOf(Field(delta, "content"));
  if (!text.empty()) {
    answer_.text += text;
    answer_.arrivals.push_back(SecondsSinceSent());
  }
  if (const std::string reason = TextOf(Field(choice, "finish_reason")); !reason.empty()) {
    answer_.finish_reason = reason;
  }
  if (const Json& usage = Field(*event, "usage"); usage.is_object()) {
    answer_.prompt_tokens = CountOf(Field(usage, "prompt_tokens"));
    answer_.tokens = CountOf(Field(usage, "completion_tokens"));
  }
  if (const Json& timings = Field(*event, "timings"); timings.is_object()) answer_.timings = timings;
  if (const Json& provenance = Field(*event, "provenance"); provenance.is_array()) {
    if (!answer_.provenance.is_array()) answer_.provenance = Json::array();
    for (const Json& token : provenance) answer_.provenance.push_back(token);
  }
}

}  // namespace outrider
