#include "drafters/retokenizer.h"

#include <algorithm>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr size_t kSliceTokens = 256;   // source tokens that are tokenised at once
constexpr size_t kMinOpenTokens = 3;   // output tokens that stay open, because text that follows may merge with them
constexpr size_t kMaxOpenTokens = 64;  // beyond this, tokens are settled at any common boundary, not only before a word
constexpr size_t kMaxOpenBytes = 4096;  // open text that reaches this is settled even without a common boundary

std::string Spell(const Tokenizer& tokenizer, std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) text += tokenizer.Piece(token, true);
  return text;
}

bool IsSpace(char c) {
  return c == ' ' || c == '\n' || c == '\t';
}

bool ContinuesCharacter(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::vector<Token> TokenizeWithin(const Tokenizer& tokenizer, std::string_view text) {
  // Some vocabularies put a space before every text. If the text begins with a line break, that space cannot merge with
  // what follows.
  for (const std::string_view anchor : {"", "\n"}) {
    std::vector<Token> tokens = tokenizer.Tokenize(std::string(anchor).append(text), false, SpecialTokens::kParse);
    const std::string spelt = Spell(tokenizer, tokens);
    if (!spelt.ends_with(text)) continue;
    size_t excess = spelt.size() - text.size();
    auto first = tokens.begin();
    while (excess > 0 && first != tokens.end()) {
      const size_t length = tokenizer.Piece(*first, true).size();
      if (length > excess) break;
      excess -= length;
      ++first;
    }
    if (excess > 0) continue;
    tokens.erase(tokens.begin(), first);
    return tokens;
  }
  return {};
}

void Retokenizer::Begin(std::span<const Token> history) {
  const auto differs = std::mismatch(source_.begin(), source_.end(), history.begin(), history.end()).first;
  const auto common = static_cast<size_t>(differs - source_.begin());
  while (!marks_.empty() && marks_.back().source > common) marks_.pop_back();
  if (marks_.empty()) {
    output_ = to_->Tokenize("", true, SpecialTokens::kParse);  // what the other model needs at the beginning of a text
    std::erase_if(output_, [this](Token token) { return to_->EndsGeneration(token); });
    marks_.push_back({0, output_.size()});
  }
  source_.resize(marks_.back().source);
  settled_ = marks_.back().output;
  output_.resize(settled_);
  open_text_.clear();
}

void Retokenizer::Append(Token token) {
  if (from_->Piece(token, false).empty()) return AppendControl(token);
  open_text_ += from_->Piece(token, true);
  source_.push_back(token);
}

void Retokenizer::AppendControl(Token token) {
  Retokenize("");
  const bool beginning = source_.empty() && token == from_->bos();  // the other model has its own
  if (!beginning) {
    const std::vector<Token> own = TokenizeWithin(*to_, from_->Piece(token, true));
    output_.insert(output_.end(), own.begin(), own.end());
  }
  source_.push_back(token);
  settled_ = output_.size();
  open_text_.clear();
  marks_.push_back({source_.size(), settled_});
}

void Retokenizer::Advance(std::span<const Token> history, size_t tokens) {
  const size_t end = source_.size() + std::min(tokens, history.size() - source_.size());
  while (source_.size() < end) {
    const size_t slice_end = std::min(end, source_.size() + kSliceTokens);
    while (source_.size() < slice_end) Append(history[source_.size()]);
    Settle();
  }
}

// Settles as many open tokens as possible: up to the last place where a word begins with a token on both sides.
void Retokenizer::Settle() {
  const size_t n_output = Retokenize("").size();
  const bool too_long = open_text_.size() >= kMaxOpenBytes;
  if (n_output == 0) {
    const bool whole = IncompleteUtf8Tail(open_text_) == 0;
    if (!too_long || (!whole && open_text_.size() < 2 * kMaxOpenBytes)) return;
    open_text_.clear();  // the other vocabulary cannot spell it: leave it out
    marks_.push_back({source_.size(), settled_});
    return;
  }
  const bool anywhere = n_output - settled_ > kMaxOpenTokens;
  // Walks over the open text token by token on both sides, and compares the offsets at which tokens begin.
  size_t source = marks_.back().source, source_offset = 0;
  size_t output = settled_, output_offset = 0;
  Mark best = marks_.back();
  size_t best_offset = 0;
  while (output + kMinOpenTokens < n_output && source < source_.size()) {
    const char next = open_text_[output_offset];
    if (source_offset == output_offset && output_offset > 0 &&
        (IsSpace(next) || (anywhere && !ContinuesCharacter(next)))) {
      best = {source, output};
      best_offset = output_offset;
    }
    if (source_offset <= output_offset) {
      source_offset += from_->Piece(source_[source++], true).size();
    } else {
      output_offset += to_->Piece(output_[output++], true).size();
    }
  }
  if (best_offset == 0 && !too_long) return;
  if (best_offset == 0) {  // there is no place where tokens of both sides begin
    best = {source_.size(), n_output};
    best_offset = open_text_.size();
  }
  marks_.push_back(best);
  settled_ = best.output;
  open_text_.erase(0, best_offset);
}

std::span<const Token> Retokenizer::Retokenize(std::string_view more) {
  output_.resize(settled_);
  if (open_text_.empty() && more.empty()) return output_;
  const std::vector<Token> open = TokenizeWithin(*to_, open_text_ + std::string(more));
  if (open.empty()) return {};
  output_.insert(output_.end(), open.begin(), open.end());
  return output_;
}

}  // namespace outrider
