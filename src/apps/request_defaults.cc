#include "apps/request_defaults.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "base/file.h"
#include "chat/json_schema.h"

namespace outrider {
namespace {

Status ReadStages(const RequestFlags& flags, std::vector<SamplingStage>* stages) {
  if (flags.samplers.empty() && flags.sampler_letters.empty()) return {};
  if (!flags.samplers.empty() && !flags.sampler_letters.empty()) {
    return InvalidArgument("--samplers and --sampler-seq say the same; give one of them");
  }
  stages->clear();
  const auto add = [&](const char* flag, const std::string& name, std::optional<SamplingStage> stage) {
    if (stage) stages->push_back(*stage);
    return stage ? Status() : InvalidArgument(fmt::format("{}: '{}' is not supported", flag, name));
  };
  std::istringstream names(flags.samplers);
  for (std::string name; std::getline(names, name, ';');) {
    if (Status status = add("--samplers", name, SamplingStageFromName(name)); !status.ok()) return status;
  }
  for (const char letter : flags.sampler_letters) {
    const Status status = add("--sampler-seq", std::string(1, letter), SamplingStageFromLetter(letter));
    if (!status.ok()) return status;
  }
  return {};
}

// "15043+1", "15043-0.5", "15043-inf".
Result<std::pair<Token, float>> ReadLogitBias(const std::string& text) {
  Token token = -1;
  const char* end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, token);
  float bias = 0;
  const bool signed_bias = id.ec == std::errc() && token >= 0 && id.ptr != end && (*id.ptr == '+' || *id.ptr == '-');
  if (signed_bias) {
    const auto value = std::from_chars(id.ptr + 1, end, bias);
    if (value.ec == std::errc() && value.ptr == end && !std::isnan(bias)) {
      return std::pair(token, *id.ptr == '-' ? -bias : bias);
    }
  }
  return InvalidArgument(fmt::format("--logit-bias '{}' is not TOKEN+BIAS or TOKEN-BIAS, such as 15043-1", text));
}

Result<std::string> FileOf(const char* flag, const std::string& path) {
  if (auto text = ReadFile(path)) return *text;
  return InvalidArgument(fmt::format("{} '{}' cannot be read", flag, path));
}

// The GBNF that answers follow; "" = none.
Result<std::string> ReadGrammar(const RequestFlags& flags) {
  const int given = !flags.grammar.empty() + !flags.grammar_file.empty() + !flags.json_schema.empty() +
                    !flags.json_schema_file.empty();
  if (given > 1) {
    return InvalidArgument("give one of --grammar, --grammar-file, --json-schema and --json-schema-file");
  }
  if (!flags.grammar_file.empty()) return FileOf("--grammar-file", flags.grammar_file);
  std::string schema = flags.json_schema;
  if (!flags.json_schema_file.empty()) {
    auto text = FileOf("--json-schema-file", flags.json_schema_file);
    if (!text.ok()) return text.status();
    schema = *text;
  }
  if (schema.empty()) return flags.grammar;
  auto json = ParseJson(schema);
  if (!json.ok()) return InvalidArgument("--json-schema is not JSON: " + json.status().message());
  auto read = JsonSchema::Read(*json, "--json-schema");
  if (!read.ok()) return InvalidArgument("--json-schema " + read.status().message());
  return read->ToGrammar();
}

Result<Json> ReadTemplateArguments(const ChatFlags& flags) {
  Json arguments = Json::object();
  if (!flags.arguments.empty()) {
    auto json = ParseJson(flags.arguments);
    if (!json.ok() || !json->is_object()) {
      return InvalidArgument(fmt::format("--chat-template-kwargs '{}' is not a JSON object", flags.arguments));
    }
    arguments = std::move(*json);
  }
  if (flags.reasoning == "on" || flags.reasoning == "off") {
    arguments["enable_thinking"] = flags.reasoning == "on";
  } else if (flags.reasoning != "auto") {
    return InvalidArgument(fmt::format("--reasoning '{}' is not one of on, off, auto", flags.reasoning));
  }
  if (!flags.reasoning_effort.empty()) arguments["reasoning_effort"] = flags.reasoning_effort;
  if (!arguments.contains("preserve_reasoning")) arguments["preserve_reasoning"] = flags.preserve_reasoning;
  return arguments;
}

}  // namespace

std::string ProcessEscapes(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t known = std::string_view("nrt'\"\\").find(next);
    unsigned char byte = 0;
    const char* digits = text.data() + std::min(i + 2, text.size());
    if (text[i] == '\\' && next != '\0' && known != std::string_view::npos) {
      out += "\n\r\t'\"\\"[known];
      ++i;
    } else if (text[i] == '\\' && next == 'x' && i + 3 < text.size() &&
               std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

Result<RequestDefaults> MakeRequestDefaults(const ServeOptions& options) {
  const RequestFlags& flags = options.requests;
  RequestDefaults defaults;
  defaults.sampling = options.sampling;
  defaults.sampling.seed = options.seed < 0 ? 0 : static_cast<uint64_t>(options.seed);
  if (Status status = ReadStages(flags, &defaults.sampling.stages); !status.ok()) return status;
  for (const std::string& text : flags.logit_bias) {
    auto bias = ReadLogitBias(text);
    if (!bias.ok()) return bias.status();
    defaults.sampling.logit_bias.push_back(*bias);
  }
  const auto escaped = [&](const std::string& text) { return flags.escapes ? ProcessEscapes(text) : text; };
  if (!flags.dry_breakers.empty()) {
    defaults.sampling.dry_sequence_breakers.clear();
    for (const std::string& text : flags.dry_breakers) {
      if (text != "none") defaults.sampling.dry_sequence_breakers.push_back(escaped(text));
    }
  }
  for (const std::string& text : flags.stop) {
    if (text.empty()) return InvalidArgument("--reverse-prompt is empty");
    defaults.stop.push_back(escaped(text));
  }
  auto grammar = ReadGrammar(flags);
  if (!grammar.ok()) return grammar.status();
  defaults.sampling.grammar.text = *grammar;
  auto arguments = ReadTemplateArguments(options.chat);
  if (!arguments.ok()) return arguments.status();
  defaults.template_arguments = std::move(*arguments);
  return defaults;
}

}  // namespace outrider
