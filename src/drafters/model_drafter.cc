#include "drafters/model_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "drafters/retokenizing_drafter.h"

namespace outrider {
namespace {

constexpr Token kMaxExtraTokens = 256;  // by which the sizes of equal vocabularies may differ (padding, additions)

}  // namespace

ModelDrafter::ModelDrafter(const DraftModel& model, int n_sequences, int window, Token vocabulary)
    : Drafter({.name = "model", .computes = true, .draws = true}),
      model_(model),
      window_(window > 0 ? std::min<int>(window, model.engine.info().sequence_length)
                         : model.engine.info().sequence_length),
      vocabulary_(vocabulary),
      memories_(static_cast<size_t>(n_sequences)) {}

void ModelDrafter::Begin(SeqId seq, std::span<const Token>, const DraftContext& context) {
  Memory& memory = MemoryOf(seq);
  memory.agreed = 0;  // the memory may share a prefix with the new history; Agree compares them
  if (memory.tokens.empty()) memory.start = 0;
  memory.sampler.Begin(context, model_.filters, vocabulary_);
}

// How many tokens at the beginning of the memory are the same as in `seen`. Those that are known to be are not compared
// again.
size_t ModelDrafter::AgreedTokens(const Memory& memory, std::span<const Token> seen) {
  const size_t comparable = std::min(seen.size(), memory.tokens.size());
  size_t agreed = memory.agreed;
  while (agreed < comparable && memory.tokens[agreed] == seen[agreed]) ++agreed;
  return agreed;
}

void ModelDrafter::Revise(SeqId seq, size_t kept) {
  Memory& memory = MemoryOf(seq);
  const auto start = static_cast<size_t>(memory.start);
  memory.agreed = std::min(memory.agreed, kept - std::min(kept, start));
}

// Cuts the memory back to what it shares with `history`.
void ModelDrafter::Agree(SeqId seq, std::span<const Token> history) {
  Memory& memory = MemoryOf(seq);
  const auto start = static_cast<size_t>(memory.start);
  if (history.size() <= start) return Forget(seq);
  const std::span<const Token> seen = history.subspan(start);
  memory.agreed = AgreedTokens(memory, seen);
  if (memory.agreed == 0 && start > 0 && !memory.tokens.empty())
    return Forget(seq);  // the window belongs to another history
  // The last token is always decoded (again), because the logits of its row give the next token.
  const size_t keep = std::min(memory.agreed, seen.size() - 1);
  if (keep < memory.tokens.size()) {
    const Pos kept = model_.engine.TruncateTo(seq, static_cast<Pos>(keep));
    memory.tokens.resize(static_cast<size_t>(kept));
  }
  memory.agreed = memory.tokens.size();
}

void ModelDrafter::Forget(SeqId seq) {
  Memory& memory = MemoryOf(seq);
  model_.engine.TruncateTo(seq, 0);
  memory.tokens.clear();
  memory.agreed = 0;
  memory.start = 0;
}

// Makes room for `more` tokens after a history of `length` tokens. When the window is full it is moved: the memory is
// cleared and begins again with the last half of the window.
void ModelDrafter::Slide(SeqId seq, size_t length, size_t more) {
  Memory& memory = MemoryOf(seq);
  const auto window = static_cast<size_t>(window_);
  if (length + more - static_cast<size_t>(memory.start) <= window) return;
  Forget(seq);
  memory.start = static_cast<Pos>(length - std::min(length, window / 2 + 1));
}

bool ModelDrafter::Add(SeqId seq, Token token, bool wants_logits) {
  Memory& memory = MemoryOf(seq);
  if (token < 0 || static_cast<int>(memory.tokens.size()) >= window_) return false;
  // A token that only the target has, such as one that stands for a row of a picture, can only make the draft wrong.
  const Token known = std::min(token, static_cast<Token>(vocabulary_ - 1));
  batch_.Add({known, static_cast<Pos>(memory.tokens.size()), seq, wants_logits});
  memory.tokens.push_back(token);
  return true;
}

bool ModelDrafter::Decode() {
  if (batch_.empty()) return true;
  const Status status = model_.engine.Decode(batch_);
  if (status.ok() == failing_) {
    failing_ = !status.ok();
    if (failing_) LogError("the draft model fails, requests go on without it: {}", status.message());
    if (!failing_) LogInfo("the draft model works again");
  }
  if (!status.ok()) {
    for (const BatchRow& row : batch_.rows()) Forget(row.seq);
  }
  return status.ok();
}

int ModelDrafter::Lag(SeqId seq, std::span<const Token> history) const {
  const Memory& memory = memories_[static_cast<size_t>(seq)];
  const auto start = static_cast<size_t>(memory.start);
  if (history.size() <= start) return static_cast<int>(std::min(history.size(), static_cast<size_t>(window_)));
  const std::span<const Token> seen = history.subspan(start);
  const auto missing = std::min(seen.size() - AgreedTokens(memory, seen), static_cast<size_t>(window_));
  return missing <= kReadAlong ? 0 : static_cast<int>(missing);
}

void ModelDrafter::Read(SeqId seq, std::span<const Token> history, int tokens) {
  Agree(seq, history);
  Slide(seq, history.size(), 0);
  Memory& memory = MemoryOf(seq);
  const std::span<const Token> seen = history.subspan(static_cast<size_t>(memory.start));
  const size_t end = std::min(seen.size() - 1, memory.tokens.size() + static_cast<size_t>(tokens));
  while (memory.tokens.size() < end) {
    batch_.Clear();
    const auto max_batch = static_cast<size_t>(model_.engine.info().max_batch);
    const size_t until = std::min(end, memory.tokens.size() + max_batch);
    while (memory.tokens.size() < until) {
      if (!Add(seq, seen[memory.tokens.size()], false)) return Forget(seq);
    }
    if (!Decode()) return;
    model_.engine.Remember(seq);
  }
  memory.agreed = memory.tokens.size();
}

void ModelDrafter::Propose(std::span<Proposal*> proposals) {
  std::sort(proposals.begin(), proposals.end(), [](const Proposal* a, const Proposal* b) { return a->seq < b->seq; });
  ReadHistories(proposals);
  while (!answers_.empty()) {
    std::erase_if(answers_, [this](Answer& answer) { return !DrawNext(answer); });
    batch_.Clear();
    for (Answer& answer : answers_) {
      answer.row = batch_.size();
      Add(answer.proposal->seq, answer.proposal->draft.tokens.back().token, true);
    }
    if (!Decode()) return;
  }
}

// Decodes what is missing in the memory of each proposal's sequence: the rest of its history, and the draft tokens that
// another drafter made.
void ModelDrafter::ReadHistories(std::span<Proposal*> proposals) {
  batch_.Clear();
  answers_.clear();
  for (Proposal* proposal : proposals) {
    const SeqId seq = proposal->seq;
    const std::vector<DraftToken>& given = proposal->draft.tokens;
    const size_t length = proposal->history.size() + given.size();
    Memory& memory = MemoryOf(seq);
    if (!memory.sampler.ready() || proposal->draft.size() >= proposal->max_tokens) continue;
    Agree(seq, proposal->history);
    Slide(seq, proposal->history.size(), static_cast<size_t>(proposal->max_tokens));
    const auto start = static_cast<size_t>(memory.start);
    const size_t rows = length - start - memory.tokens.size();
    if (rows > kReadAlong + given.size()) continue;  // the window was moved: Read reads it again in slices
    if (static_cast<int>(rows) + batch_.size() > model_.engine.info().max_batch) continue;
    bool readable = length > start;
    for (size_t at = start + memory.tokens.size(); readable && at < length; ++at) {
      const bool committed = at < proposal->history.size();
      const Token token = committed ? proposal->history[at] : given[at - proposal->history.size()].token;
      readable = Add(seq, token, at + 1 == length);
    }
    if (!readable) continue;
    answers_.push_back({proposal, 1, batch_.size() - 1});
    if (!given.empty()) model_.engine.SaveState(seq);
  }
  if (!Decode()) answers_.clear();
  for (const Answer& answer : answers_) {
    if (answer.proposal->draft.empty()) model_.engine.SaveState(answer.proposal->seq);
  }
}

// Appends the next token to a draft; false if the draft ends here.
bool ModelDrafter::DrawNext(Answer& answer) {
  Proposal& proposal = *answer.proposal;
  Memory& memory = MemoryOf(proposal.seq);
  return memory.sampler.Append(model_.engine.Logits(answer.row), model_.tokenizer, proposal, &answer.survival) &&
         static_cast<int>(memory.tokens.size()) < window_;
}

VocabularyMatch CompareVocabularies(const Tokenizer& target, const Tokenizer& draft) {
  const Token smaller = std::min(target.vocabulary_size(), draft.vocabulary_size());
  const Token larger = std::max(target.vocabulary_size(), draft.vocabulary_size());
  if (target.fingerprint() == draft.fingerprint()) return {smaller, ""};
  for (Token token = 0; token < smaller; ++token) {
    const std::string ours = target.Piece(token, true), theirs = draft.Piece(token, true);
    if (ours != theirs) {
      return {token,
              fmt::format("token {} is '{}' in the target's vocabulary and '{}' in the draft's", token, ours, theirs)};
    }
  }
  if (larger - smaller > kMaxExtraTokens) {
    return {smaller, fmt::format("the target's vocabulary has {} tokens, the draft's {}", target.vocabulary_size(),
                                 draft.vocabulary_size())};
  }
  return {smaller, ""};
}

DrafterKind ModelKind() {
  return {"model", "a small model (--model-draft) that guesses what the large one says",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            const int window = parameters.Integer("window", 0, 0, 1 << 24);
            if (Status status = parameters.Check(); !status.ok()) return status;
            if (environment.model == nullptr) {
              return InvalidArgument("the drafter 'model' needs a draft model: give one with -md FILE");
            }
            const DraftModel& model = *environment.model;
            const VocabularyMatch match = CompareVocabularies(environment.tokenizer, model.tokenizer);
            const Token vocabulary = match.difference.empty() ? match.common : model.tokenizer.vocabulary_size();
            auto drafter = std::make_unique<ModelDrafter>(model, environment.n_sequences, window, vocabulary);
            if (match.difference.empty()) return std::unique_ptr<Drafter>(std::move(drafter));
            LogInfo("the draft model has a vocabulary of its own, and drafts through text: {}", match.difference);
            return std::unique_ptr<Drafter>(std::make_unique<RetokenizingDrafter>(
                std::move(drafter), environment.tokenizer, model.tokenizer, environment.n_sequences));
          }};
}

}  // namespace outrider
