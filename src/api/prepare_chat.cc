// From a conversation to a request of the scheduler.
#include <fmt/format.h>

#include <algorithm>

#include "api/prepare.h"
#include "scheduler/request_check.h"

namespace outrider {
namespace {

// The token `text` is, or kNoToken if it is several.
Token SingleToken(const std::string& text, const Tokenizer& tokenizer) {
  const std::vector<Token> tokens = tokenizer.Tokenize(text, /*add_bos=*/false, SpecialTokens::kParse);
  return tokens.size() == 1 ? tokens[0] : kNoToken;
}

std::string EscapeRegex(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view(".^$|()*+?[]{}\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string AnchorPattern(const std::string& pattern) {
  if (pattern.empty()) return "^$";
  return (pattern.front() == '^' ? "" : "^") + pattern + (pattern.back() == '$' ? "" : "$");
}

GrammarOptions MakeGrammar(const ChatPrompt& prompt, const Tokenizer& tokenizer) {
  GrammarOptions grammar;
  grammar.text = prompt.grammar;
  grammar.lazy = prompt.grammar_lazy;
  grammar.prefill = prompt.grammar_prefill;
  for (const GrammarTrigger& trigger : prompt.triggers) {
    switch (trigger.kind) {
      case GrammarTrigger::Kind::kWord: {
        const bool preserved =
            std::find(prompt.preserved.begin(), prompt.preserved.end(), trigger.value) != prompt.preserved.end();
        const Token token = preserved ? SingleToken(trigger.value, tokenizer) : kNoToken;
        if (token == kNoToken) {
          grammar.trigger_patterns.push_back(EscapeRegex(trigger.value));
        } else {
          grammar.trigger_tokens.push_back(token);
        }
        break;
      }
      case GrammarTrigger::Kind::kPattern:
        grammar.trigger_patterns.push_back(trigger.value);
        break;
      case GrammarTrigger::Kind::kFullPattern:
        grammar.trigger_patterns.push_back(AnchorPattern(trigger.value));
        break;
    }
  }
  return grammar;
}

// Nothing without a budget, or if the template does not say how the model thinks.
ReasoningOptions LimitReasoning(const ChatInput& input, const ChatPrompt& prompt, const Tokenizer& tokenizer) {
  ReasoningOptions options;
  if (input.reasoning_budget < 0 || prompt.thinking_start.empty() || prompt.thinking_ends.empty()) return options;
  const auto tokens_of = [&](const std::string& text) {
    return tokenizer.Tokenize(text, /*add_bos=*/false, SpecialTokens::kParse);
  };
  options.budget = input.reasoning_budget;
  options.start = tokens_of(prompt.thinking_start);
  for (const std::string& end : prompt.thinking_ends) options.ends.push_back(tokens_of(end));
  options.closing = tokens_of(input.reasoning_budget_message + prompt.thinking_ends.front());
  options.begun = prompt.thinking;
  return options;
}

// The parser needs text that the tokenizer would keep to itself.
bool NeedsSpecialText(const ChatInput& input, const ChatPrompt& prompt, const Tokenizer& tokenizer) {
  if (prompt.parser->plain() && input.extract_reasoning) return false;
  return std::any_of(prompt.preserved.begin(), prompt.preserved.end(), [&](const std::string& text) {
    const Token token = SingleToken(text, tokenizer);
    return token != kNoToken && tokenizer.Piece(token, /*show_special=*/false).empty();
  });
}

// Templates that print the beginning-of-text token themselves must not get a second one.
bool BeginsWithBos(const std::string& text, const Tokenizer& tokenizer) {
  if (tokenizer.bos() == kNoToken) return false;
  const std::string bos = tokenizer.Piece(tokenizer.bos(), /*show_special=*/true);
  return !bos.empty() && text.compare(0, bos.size(), bos) == 0;
}

}  // namespace

Result<std::shared_ptr<const ChatParser>> PrepareChat(const ChatInput& input, const ApiContext& context,
                                                      GenerationRequest* request) {
  Result<ChatPrompt> prompt = context.chat.Apply(input);
  if (!prompt.ok()) return prompt.status();
  const Tokenizer& tokenizer = context.tokenizer;
  const Status prepared = PreparePrompt(prompt->text, !BeginsWithBos(prompt->text, tokenizer), input.attachments,
                                        context, "messages", request);
  if (!prepared.ok()) return prepared;
  // Without a format of its own a request has the server's, if there is one.
  if (!prompt->grammar.empty()) request->sampling.grammar = MakeGrammar(*prompt, tokenizer);
  request->sampling.reasoning = LimitReasoning(input, *prompt, tokenizer);
  request->stop.insert(request->stop.end(), prompt->stop.begin(), prompt->stop.end());
  request->show_special = NeedsSpecialText(input, *prompt, tokenizer);
  return std::move(prompt->parser);
}

Status CheckTextFits(size_t tokens, size_t bytes, const ApiContext& context, const char* field) {
  const size_t fewest = tokens + context.tokenizer.FewestTokens(bytes);
  if (fewest < static_cast<size_t>(context.sequence_length)) return {};
  return PromptTooLong(fewest, context.sequence_length, field, /*at_least=*/true);
}

Status CheckPromptFits(size_t prompt_tokens, const ApiContext& context, const char* field) {
  if (prompt_tokens == 0) return InvalidArgument("the prompt is empty", field);
  if (prompt_tokens < static_cast<size_t>(context.sequence_length)) return {};
  return PromptTooLong(prompt_tokens, context.sequence_length, field);
}

}  // namespace outrider
