#include "drafters/retelling.h"

#include <algorithm>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr size_t kSlice = 256;          // source tokens tokenised at once
constexpr size_t kOpenTokens = 3;       // stay open at least: what follows may merge with them
constexpr size_t kMostOpen = 64;        // more than that are settled wherever both sides have a boundary
constexpr size_t kMostOpenText = 4096;  // where they have none, this much is given up as it is

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
  // Some vocabularies put a space before whatever they are given; after a line break it cannot merge with the text.
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

void Retelling::Begin(std::span<const Token> history) {
  const auto differs = std::mismatch(source_.begin(), source_.end(), history.begin(), history.end()).first;
  const auto common = static_cast<size_t>(differs - source_.begin());
  while (!marks_.empty() && marks_.back().source > common) marks_.pop_back();
  if (marks_.empty()) {
    told_ = to_->Tokenize("", true, SpecialTokens::kParse);  // what the other model wants at the beginning
    std::erase_if(told_, [this](Token token) { return to_->EndsGeneration(token); });
    marks_.push_back({0, told_.size()});
  }
  source_.resize(marks_.back().source);
  settled_ = marks_.back().told;
  told_.resize(settled_);
  open_text_.clear();
}

void Retelling::Read(Token token) {
  if (from_->Piece(token, false).empty()) return ReadControl(token);
  open_text_ += from_->Piece(token, true);
  source_.push_back(token);
}

void Retelling::ReadControl(Token token) {
  Tell("");
  const bool beginning = source_.empty() && token == from_->bos();  // the other side has its own
  if (!beginning) {
    const std::vector<Token> own = TokenizeWithin(*to_, from_->Piece(token, true));
    told_.insert(told_.end(), own.begin(), own.end());
  }
  source_.push_back(token);
  settled_ = told_.size();
  open_text_.clear();
  marks_.push_back({source_.size(), settled_});
}

void Retelling::Follow(std::span<const Token> history, size_t tokens) {
  const size_t end = source_.size() + std::min(tokens, history.size() - source_.size());
  while (source_.size() < end) {
    const size_t slice_end = std::min(end, source_.size() + kSlice);
    while (source_.size() < slice_end) Read(history[source_.size()]);
    Settle();
  }
}

// Moves the boundary behind the settled tokens on, to where a word begins on both sides.
void Retelling::Settle() {
  const size_t n_told = Tell("").size();
  const bool too_long = open_text_.size() >= kMostOpenText;
  if (n_told == 0) {
    const bool whole = IncompleteUtf8Tail(open_text_) == 0;
    if (!too_long || (!whole && open_text_.size() < 2 * kMostOpenText)) return;
    open_text_.clear();  // the other side cannot say this
    marks_.push_back({source_.size(), settled_});
    return;
  }
  const bool anywhere = n_told - settled_ > kMostOpen;
  // Text offsets at which tokens of either side begin, walked together.
  size_t source = marks_.back().source, source_offset = 0;
  size_t told = settled_, told_offset = 0;
  Mark best = marks_.back();
  size_t best_offset = 0;
  while (told + kOpenTokens < n_told && source < source_.size()) {
    const char next = open_text_[told_offset];
    if (source_offset == told_offset && told_offset > 0 && (IsSpace(next) || (anywhere && !ContinuesCharacter(next)))) {
      best = {source, told};
      best_offset = told_offset;
    }
    if (source_offset <= told_offset) {
      source_offset += from_->Piece(source_[source++], true).size();
    } else {
      told_offset += to_->Piece(told_[told++], true).size();
    }
  }
  if (best_offset == 0 && !too_long) return;
  if (best_offset == 0) {  // no place where both begin a token
    best = {source_.size(), n_told};
    best_offset = open_text_.size();
  }
  marks_.push_back(best);
  settled_ = best.told;
  open_text_.erase(0, best_offset);
}

std::span<const Token> Retelling::Tell(std::string_view more) {
  told_.resize(settled_);
  if (open_text_.empty() && more.empty()) return told_;
  const std::vector<Token> open = TokenizeWithin(*to_, open_text_ + std::string(more));
  if (open.empty()) return {};
  told_.insert(told_.end(), open.begin(), open.end());
  return told_;
}

}  // namespace outrider
