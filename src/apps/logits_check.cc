#include "apps/logits_check.h"

#include <algorithm>
#include <cstring>

#include "apps/check_texts.h"

namespace outrider {
namespace {

constexpr size_t kTextTokens = 320;  // more than 256, where attention kernels change

std::vector<Token> LongText(const Tokenizer& tokenizer) {
  std::vector<Token> tokens;
  while (tokens.size() < kTextTokens) {
    for (const char* text : kCheckTexts) {
      const auto more = tokenizer.Tokenize(text, tokens.empty(), SpecialTokens::kAsText);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
  }
  tokens.resize(kTextTokens);
  return tokens;
}

}  // namespace

void ForgetAll(Engine& engine) {
  for (SeqId seq = 0; seq < engine.info().n_sequences; ++seq) engine.TruncateTo(seq, 0);
}

LogitsCheck::LogitsCheck(Engine& engine, const Tokenizer& tokenizer, const AdapterSet& adapters)
    : engine_(engine), adapters_(adapters), tokens_(LongText(tokenizer)) {
  tokens_.resize(std::min(tokens_.size(), static_cast<size_t>(engine.info().sequence_length) - 1));
}

Status LogitsCheck::Prepare() {
  if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
  for (size_t i = Size() - kRows; i < Size(); ++i) {
    if (Status status = DecodeUpTo(i + 1, 0); !status.ok()) return status;
    const auto logits = engine_.Logits(0);
    alone_.emplace_back(logits.begin(), logits.end());
  }
  return {};
}

Result<bool> LogitsCheck::InBatchesOf(int width) {
  if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
  return CompareLastRows(0, width, 0);
}

Result<bool> LogitsCheck::WithPromptInSlicesOf(int slice) {
  if (Status status = ReadPrompt(0, slice); !status.ok()) return status;
  return CompareLastRows(0, 1, 0);
}

Result<bool> LogitsCheck::BesideOtherSequences() {
  const SeqId last = engine_.info().n_sequences - 1;
  if (Status status = ReadPrompt(last, kWhole); !status.ok()) return status;
  return CompareLastRows(last, 1, last);
}

Result<bool> LogitsCheck::AfterRollbacks() {
  constexpr size_t kMaxAgain = 4;  // rows that a rollback removed too, and that are decoded again with the next row
  constexpr int kMaxWrong = 4;
  if (Status status = ReadPrompt(0, kWhole); !status.ok()) return status;
  for (size_t i = Size() - kRows; i < Size(); ++i) {
    if (i - Length() > kMaxAgain) {
      if (Status status = DecodeUpTo(i, 0); !status.ok()) return status;
    }
    const size_t first = Length();
    const EngineInfo& info = engine_.info();
    const Pos wrong = std::min({kMaxWrong, info.max_batch - static_cast<int>(i - first) - 1, info.max_outputs - 1,
                                info.sequence_length - static_cast<Pos>(i) - 1});
    engine_.SaveState(0);
    if (Status status = DecodeUpTo(i + 1, wrong); !status.ok()) return status;
    if (!Same(engine_.Logits(static_cast<int>(i - first)), i)) return false;
    engine_.TruncateTo(0, static_cast<Pos>(i) + 1);
  }
  return true;
}

Status LogitsCheck::DecodeUpTo(size_t end, Pos wrong) {
  batch_.Clear(adapters_);
  for (size_t at = Length(); at < end; ++at) {
    batch_.Add({tokens_[at], static_cast<Pos>(at), 0, at + 1 == end});
  }
  for (Pos i = 0; i < wrong; ++i) {
    batch_.Add({tokens_[static_cast<size_t>(i) + 1], static_cast<Pos>(end) + i, 0, true});
  }
  return engine_.Decode(batch_);
}

Status LogitsCheck::ReadPrompt(SeqId seq, int slice) {
  ForgetAll(engine_);
  const auto max_rows = static_cast<size_t>(std::min(slice, engine_.info().max_batch));
  for (size_t at = 0, end = Size() - kRows; at < end;) {
    batch_.Clear(adapters_);
    for (const size_t stop = std::min(end, at + max_rows); at < stop; ++at) {
      batch_.Add({tokens_[at], static_cast<Pos>(at), seq, false});
    }
    if (Status status = engine_.Decode(batch_); !status.ok()) return status;
  }
  return {};
}

Result<bool> LogitsCheck::CompareLastRows(SeqId seq, int width, SeqId neighbours) {
  for (size_t at = Size() - kRows; at < Size();) {
    batch_.Clear(adapters_);
    for (SeqId other = 0; other < neighbours; ++other) {
      batch_.Add({tokens_[at % 7], engine_.Length(other), other, true});
    }
    const size_t first = at;
    const int first_row = batch_.size();
    for (const size_t stop = std::min(Size(), at + static_cast<size_t>(width)); at < stop; ++at) {
      batch_.Add({tokens_[at], static_cast<Pos>(at), seq, true});
    }
    if (Status status = engine_.Decode(batch_); !status.ok()) return status;
    for (size_t i = first; i < at; ++i) {
      if (!Same(engine_.Logits(first_row + static_cast<int>(i - first)), i)) return false;
    }
  }
  return true;
}

bool LogitsCheck::Same(std::span<const float> logits, size_t token) const {
  const std::vector<float>& expected = alone_[token - (Size() - kRows)];
  return std::memcmp(logits.data(), expected.data(), expected.size() * sizeof(float)) == 0;
}

}  // namespace outrider
