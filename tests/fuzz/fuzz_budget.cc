// Any bytes as the recipe of a large request, within the limits of size: nothing may take longer than kLimit to be
// parsed and refused, or parsed and made ready for the scheduler. What counts is computing time, so that other programs
// on the machine make no difference.
//
// The first byte picks the endpoint. In the rest, "~", a letter or digit that says how often, and text up to the next
// "~" stand for a repetition of that text (two to the power of that digit), in which "#" is the number of the turn. If
// the first byte is not ASCII, the others are decisions (Cook), from which comes such a recipe that is always JSON.
#include <llama.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "endpoints.h"
#include "http/server.h"
#include "sampling/gbnf_check.h"

namespace outrider {
namespace {

constexpr double kLimit = 0.1;               // s
constexpr double kReferenceRelease = 0.009;  // s; a release build on the machine of docs/SECURITY.md
constexpr size_t kMaxBody = 8 << 20;

// Looks to libFuzzer like code that an input has reached: it keeps inputs that took longer than those before, and goes
// on from them.
constexpr size_t kTimes = 64;
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t reached[std::size(kEndpoints)][kTimes];

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

size_t Repetitions(char how_often) {
  constexpr int kMaxPower = 20;
  const int power = how_often >= 'a' ? how_often - 'a' + 10 : how_often - '0';
  return size_t{1} << std::min(static_cast<unsigned>(power), unsigned{kMaxPower});
}

std::string Expand(std::string_view recipe) {
  std::string body;
  while (!recipe.empty() && body.size() < kMaxBody) {
    const size_t plain = std::min(recipe.find('~'), recipe.size());
    body += recipe.substr(0, plain);
    recipe.remove_prefix(std::min(plain + 1, recipe.size()));
    if (recipe.empty()) break;
    const size_t times = Repetitions(recipe[0]);
    recipe.remove_prefix(1);
    const std::string_view repeated = recipe.substr(0, recipe.find('~'));
    recipe.remove_prefix(std::min(repeated.size() + 1, recipe.size()));
    if (repeated.empty()) continue;
    for (size_t turn = 0; turn < times && body.size() < kMaxBody; ++turn) {
      for (const char c : repeated) {
        if (c == '#') {
          body += std::to_string(turn);
        } else {
          body += c;
        }
      }
    }
  }
  body.resize(std::min(body.size(), kMaxBody));
  return body;
}

// Writes a recipe from decisions.
class Cook {
 public:
  explicit Cook(std::string_view decisions) : decisions_(decisions) {}

  std::string Request() { return Fields(); }

 private:
  static constexpr const char* kNames[] = {"prompt",
                                           "messages",
                                           "role",
                                           "content",
                                           "type",
                                           "text",
                                           "input",
                                           "tools",
                                           "function",
                                           "name",
                                           "arguments",
                                           "id",
                                           "tool_calls",
                                           "max_tokens",
                                           "stop",
                                           "stop_sequences",
                                           "grammar",
                                           "logit_bias",
                                           "n",
                                           "n_probs",
                                           "json_schema",
                                           "schema",
                                           "properties",
                                           "required",
                                           "items",
                                           "enum",
                                           "const",
                                           "anyOf",
                                           "allOf",
                                           "oneOf",
                                           "$ref",
                                           "$defs",
                                           "pattern",
                                           "minLength",
                                           "maxLength",
                                           "minimum",
                                           "maximum",
                                           "minItems",
                                           "maxItems",
                                           "prefixItems",
                                           "parameters",
                                           "system",
                                           "a",
                                           "b",
                                           "format",
                                           "additionalProperties",
                                           "response_format",
                                           "input_prefix",
                                           "input_suffix",
                                           "input_extra",
                                           "documents",
                                           "query",
                                           "instructions",
                                           "input_schema",
                                           "dry_sequence_breakers",
                                           "chat_template_kwargs",
                                           "tool_choice",
                                           "stream",
                                           "samplers"};
  static constexpr const char* kTexts[] = {"user",
                                           "assistant",
                                           "system",
                                           "tool",
                                           "text",
                                           "function",
                                           "object",
                                           "string",
                                           "array",
                                           "integer",
                                           "json_schema",
                                           "json_object",
                                           "\\u0023/$defs/a",
                                           "\\u0023/$defs/b",
                                           "\\u0023",
                                           "[a-z]",
                                           "{1,50}",
                                           "(a|b)*",
                                           "root ::= ",
                                           "r# ::= ",
                                           "\\n",
                                           "\\\"x#\\\" ",
                                           "| ",
                                           "( ",
                                           ") ",
                                           "[^a]* ",
                                           "? ",
                                           "r1 ",
                                           "word ",
                                           "<|im_start|>",
                                           "\\u00e4",
                                           "#",
                                           "a",
                                           "date-time"};

  unsigned Decide(unsigned choices) {
    if (decisions_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(decisions_[0]);
    decisions_.remove_prefix(1);
    return byte % choices;
  }

  // Repetitions cannot be nested: only the innermost one is.
  std::string Repeat(const std::string& what) {
    const unsigned power = Decide(21);
    if (power == 0 || what.find('~') != what.npos) return what;
    return std::string("~") + static_cast<char>(power < 10 ? '0' + power : 'a' + power - 10) + what + "~";
  }

  std::string Text() {
    std::string text = "\"";
    for (unsigned parts = Decide(5); parts > 0; --parts) text += Repeat(kTexts[Decide(std::size(kTexts))]);
    return text + '"';
  }

  std::string Fields() {
    std::string fields = "{";
    for (unsigned left = 1 + Decide(6); left > 0; --left) {
      fields += std::string("\"") + kNames[Decide(std::size(kNames))] + "\": ";
      fields += Value() + (left > 1 ? ", " : "");
    }
    return fields + "}";
  }

  // With a last one that no comma follows.
  std::string Many(const std::string& key) {
    const std::string most = Repeat((key.empty() ? "" : '"' + key + "#\": ") + Value() + ", ");
    return most + (key.empty() ? "" : '"' + key + "\": ") + Value();
  }

  std::string Value() {
    constexpr int kMaxDepth = 12;
    if (decisions_.empty() || depth_ >= kMaxDepth) return "1";
    ++depth_;
    const std::string value = AnyValue();
    --depth_;
    return value;
  }

  std::string AnyValue() {
    switch (Decide(7)) {
      case 0:
        return std::to_string(Decide(256));
      case 1:
      case 2:
        return Text();
      case 3:
        return "[" + Many("") + "]";
      case 4:
        return "{" + Many("k") + "}";
      case 5:
        return Fields();
      default:
        return "true";
    }
  }

  std::string_view decisions_;
  int depth_ = 0;
};

// What libllama does with the grammar when the sampler is built, apart from the vocabulary.
void BuildGrammar(const std::string& text) {
  if (text.empty() || !CheckGbnf(text, [](std::string_view) { return false; }).ok()) return;
  llama_sampler_free(llama_sampler_init_grammar(nullptr, text.c_str(), "root"));
}

void Handle(size_t endpoint, std::string_view body) {
  const Result<Json> parsed = ParseJson(body, HttpOptions().json);
  if (!parsed.ok()) return;
  const auto [parse, answer] = kEndpoints[endpoint % std::size(kEndpoints)];
  if (parse == nullptr) return;
  const Result<ParsedRequest> request = parse(*parsed, "owner", Context());
  if (request.ok()) BuildGrammar(request->generation.sampling.grammar.text);
}

double Measure(size_t endpoint, std::string_view body) {
  const double start = CpuSeconds();
  Handle(endpoint, body);
  return CpuSeconds() - start;
}

// How much slower this build is than a release build.
double Slowdown() {
  const std::string reference =
      Expand(R"({"prompt": "~fa sentence of some words, ~", "a": [~g#, ~0], "b": [~c{"x": 1, "y": "z"},~0]})");
  double fastest = 1;
  for (int i = 0; i < 5; ++i) fastest = std::min(fastest, Measure(1, reference));
  std::fprintf(stderr, "the reference takes %.1f ms\n", 1e3 * fastest);
  return std::max(1.0, fastest / kReferenceRelease);
}

void Run(size_t endpoint, std::string_view recipe) {
  static const double slowdown = Slowdown();
  const std::string body = Expand(recipe);
  double seconds = Measure(endpoint, body);
  const double steps = 6 * std::log2(1 + 1e4 * seconds / slowdown);
  reached[endpoint % std::size(kEndpoints)][std::min(kTimes - 1, static_cast<size_t>(steps))] = 1;
  // What is really slow is slow each time.
  for (int i = 0; i < 3 && seconds > kLimit * slowdown; ++i) seconds = std::min(seconds, Measure(endpoint, body));
  if (seconds <= kLimit * slowdown) return;
  std::fprintf(stderr, "a body of %zu bytes takes %.0f ms, as much as %.0f ms of a release build\n", body.size(),
               1e3 * seconds, 1e3 * seconds / slowdown);
  std::abort();
}

}  // namespace
}  // namespace outrider

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto first = static_cast<uint8_t>(data[0] - '1');
  if (data[0] < 0x80) {
    outrider::Run(first, rest);
  } else {
    outrider::Run(first, outrider::Cook(rest).Request());
  }
  return 0;
}
