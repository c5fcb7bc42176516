#include "drafters/head_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace outrider {
namespace {

constexpr int kDefaultWindow = 1024;  // a state of a large model has 50 KB

}  // namespace

HeadDrafter::HeadDrafter(std::string name, const DraftHead& head, const Tokenizer& tokenizer, int n_sequences,
                         int window)
    : Drafter({.name = std::move(name), .computes = true, .draws = true, .reads_hidden = true}),
      head_(head),
      tokenizer_(tokenizer),
      window_(static_cast<size_t>(window)),
      memories_(static_cast<size_t>(n_sequences)),
      places_(static_cast<size_t>(n_sequences)) {}

// The state at position p depends on tokens 0...p. The head's row made from it also contains token p + 1.
void HeadDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Memory& memory = MemoryOf(seq);
  const auto same = std::mismatch(memory.history.begin(), memory.history.end(), history.begin(), history.end());
  const auto common = static_cast<Pos>(same.first - memory.history.begin());
  while (!memory.unread.empty() && memory.unread.back().pos >= common) memory.unread.pop_back();
  while (!memory.read.empty() && memory.read.back() + 1 >= common) memory.read.pop_back();
  memory.history.assign(history.begin(), history.end());
  head_.head.TruncateTo(seq, static_cast<Pos>(memory.read.size()));
  memory.sampler.Begin(context, head_.filters, head_.vocabulary);
}

void HeadDrafter::Commit(SeqId seq, const CommittedStep& step) {
  Memory& memory = MemoryOf(seq);
  const auto known = static_cast<std::ptrdiff_t>(std::min(memory.history.size(), step.history.size()));
  memory.history.insert(memory.history.end(), step.history.begin() + known, step.history.end());
  for (int i = 0; i < step.rows.count; ++i) {
    const Pos pos = step.rows.first + i;
    const Pos newest = !memory.unread.empty() ? memory.unread.back().pos
                       : memory.read.empty()  ? -1
                                              : memory.read.back();
    // Rows come again after a rollback, and those of the beginning of a long prompt would be dropped later.
    if (pos <= newest || static_cast<size_t>(pos) + 1 + window_ < step.history.size()) continue;
    const std::span<const float> values = step.rows.Hidden(i);
    memory.unread.push_back({pos, {values.begin(), values.end()}});
  }
  while (memory.unread.size() > window_) memory.unread.pop_front();
}

// How many of the unread states the head can read: a row also needs the token after the state's.
size_t HeadDrafter::Readable(const Memory& memory, size_t history_size) {
  size_t count = memory.unread.size();
  while (count > 0 && static_cast<size_t>(memory.unread[count - 1].pos) + 1 >= history_size) --count;
  return count;
}

int HeadDrafter::Lag(SeqId seq, std::span<const Token> history) const {
  const size_t readable = Readable(memories_[static_cast<size_t>(seq)], history.size());
  return readable <= kReadAlong ? 0 : static_cast<int>(readable);
}

void HeadDrafter::Read(SeqId seq, std::span<const Token> history, int tokens) {
  Memory& memory = MemoryOf(seq);
  head_.head.TruncateTo(seq, static_cast<Pos>(memory.read.size()));
  // The last state stays unread: Propose reads it and asks for outputs.
  size_t left = std::min(static_cast<size_t>(tokens), std::max<size_t>(Readable(memory, history.size()), 1) - 1);
  while (left > 0) {
    rows_.clear();
    const size_t slice = std::min(left, static_cast<size_t>(head_.head.info().max_batch));
    places_[static_cast<size_t>(seq)] = static_cast<Pos>(memory.read.size());
    for (size_t i = 0; i < slice; ++i) AddState(seq, memory.unread[i], history);
    if (!Decode(false)) return;
    MarkRead(seq, slice);
    left -= slice;
  }
}

void HeadDrafter::AddState(SeqId seq, const State& state, std::span<const Token> history) {
  AddRow({history[static_cast<size_t>(state.pos) + 1], places_[static_cast<size_t>(seq)]++, seq, state.values, true});
}

// The first `count` unread states are in the head's memory.
void HeadDrafter::MarkRead(SeqId seq, size_t count) {
  Memory& memory = MemoryOf(seq);
  for (; count > 0; --count) {
    memory.read.push_back(memory.unread.front().pos);
    memory.unread.pop_front();
  }
}

// Decodes `rows_`. After an error the sequences begin again with the states that come from now on.
bool HeadDrafter::Decode(bool wants_outputs) {
  const Status status = head_.head.Decode(rows_, wants_outputs);
  if (status.ok() == failing_) {
    failing_ = !status.ok();
    if (failing_) LogError("the head {} fails, requests go on without it: {}", traits().name, status.message());
    if (!failing_) LogInfo("the head {} works again", traits().name);
  }
  if (!status.ok()) {
    for (const HeadRow& row : rows_) places_[static_cast<size_t>(row.seq)] = -1;
    for (size_t seq = 0; seq < places_.size(); ++seq) {
      if (places_[seq] < 0) Forget(static_cast<SeqId>(seq));
    }
  }
  return status.ok();
}

void HeadDrafter::Forget(SeqId seq) {
  Memory& memory = MemoryOf(seq);
  head_.head.TruncateTo(seq, 0);
  memory.read.clear();
  memory.unread.clear();
  places_[static_cast<size_t>(seq)] = 0;
}

bool HeadDrafter::MayDraft(const Proposal& proposal) {
  const Memory& memory = MemoryOf(proposal.seq);
  if (!memory.sampler.ready() || proposal.draft.size() >= proposal.max_tokens || proposal.draft.size() > kMaxGiven)
    return false;
  const size_t readable = Readable(memory, proposal.history.size());
  if (readable == 0 || readable > kReadAlong) return false;
  // The newest token has no row yet, so the last state is that of the token before.
  if (static_cast<size_t>(memory.unread[readable - 1].pos) + 2 != proposal.history.size()) return false;
  const size_t rows = memory.read.size() + readable + static_cast<size_t>(proposal.max_tokens);
  return rows <= static_cast<size_t>(head_.head.info().sequence_length);
}

void HeadDrafter::Propose(std::span<Proposal*> proposals) {
  std::sort(proposals.begin(), proposals.end(), [](const Proposal* a, const Proposal* b) { return a->seq < b->seq; });
  ReadStates(proposals);
  while (!answers_.empty()) {
    std::erase_if(answers_, [this](Answer& answer) { return !FeedOrDraw(answer); });
    if (answers_.empty()) return;
    rows_.clear();
    for (Answer& answer : answers_) {
      const SeqId seq = answer.proposal->seq;
      const Token token = answer.proposal->draft.tokens[answer.fed++].token;
      AddRow({token, places_[static_cast<size_t>(seq)]++, seq, head_.head.State(answer.row), false});
      answer.row = static_cast<int>(rows_.size()) - 1;
    }
    if (!Decode(true)) return;
  }
}

// Whether the draft goes on: with a given token that the head has not read, or with one that it draws.
bool HeadDrafter::FeedOrDraw(Answer& answer) {
  Proposal& proposal = *answer.proposal;
  if (answer.fed < proposal.draft.tokens.size()) return true;
  return MemoryOf(proposal.seq).sampler.Append(head_.head.Logits(answer.row), tokenizer_, proposal, &answer.survival);
}

// Lets the head read the unread states of each proposal's sequence. The last of them stays unread, so that the next
// draft, which may continue the same history, has its outputs again.
void HeadDrafter::ReadStates(std::span<Proposal*> proposals) {
  const HeadInfo& info = head_.head.info();
  answers_.clear();
  size_t rows = 0;
  for (Proposal* proposal : proposals) {
    if (!MayDraft(*proposal)) continue;
    const size_t readable = Readable(MemoryOf(proposal->seq), proposal->history.size());
    if (rows + readable > static_cast<size_t>(info.max_batch)) continue;
    if (answers_.size() == static_cast<size_t>(info.max_outputs)) break;
    rows += readable;
    answers_.push_back({proposal});
  }
  if (answers_.empty()) return;
  // All rows of a decode give outputs, or none does. One decode costs less than two, if it may have so many outputs.
  const bool at_once = rows <= static_cast<size_t>(info.max_outputs);
  rows_.clear();
  for (const Answer& answer : answers_) {
    const SeqId seq = answer.proposal->seq;
    Memory& memory = MemoryOf(seq);
    head_.head.TruncateTo(seq, static_cast<Pos>(memory.read.size()));
    places_[static_cast<size_t>(seq)] = static_cast<Pos>(memory.read.size());
    const size_t before_last = Readable(memory, answer.proposal->history.size()) - 1;
    for (size_t i = 0; !at_once && i < before_last; ++i) AddState(seq, memory.unread[i], answer.proposal->history);
  }
  if (!rows_.empty() && !Decode(false)) return answers_.clear();
  rows_.clear();
  for (Answer& answer : answers_) {
    const SeqId seq = answer.proposal->seq;
    Memory& memory = MemoryOf(seq);
    const size_t readable = Readable(memory, answer.proposal->history.size());
    for (size_t i = at_once ? 0 : readable - 1; i < readable; ++i)
      AddState(seq, memory.unread[i], answer.proposal->history);
    answer.row = static_cast<int>(rows_.size()) - 1;
  }
  if (!Decode(true)) return answers_.clear();
  for (const Answer& answer : answers_) {
    const Proposal& proposal = *answer.proposal;
    MarkRead(proposal.seq, Readable(MemoryOf(proposal.seq), proposal.history.size()) - 1);
  }
}

namespace {

Result<std::unique_ptr<Drafter>> MakeHeadDrafter(const std::string& name, DrafterParameters& parameters,
                                                 const DrafterEnvironment& environment, const DraftHead* head,
                                                 const std::string& missing) {
  const int window = parameters.Integer("window", kDefaultWindow, 1, 1 << 24);
  if (Status status = parameters.Check(); !status.ok()) return status;
  if (head == nullptr) return InvalidArgument(missing);
  if (environment.target == nullptr) return Unsupported("the drafter '" + name + "' needs the target's hidden states");
  if (Status status = environment.target->ProvideHidden(head->head.info().layers); !status.ok()) {
    return Status(status.code(), fmt::format("the drafter '{}': {}", name, status.message()));
  }
  return std::unique_ptr<Drafter>(
      std::make_unique<HeadDrafter>(name, *head, environment.tokenizer, environment.n_sequences, window));
}

}  // namespace

DrafterKind Eagle3Kind() {
  return {"eagle3", "an EAGLE-3 head (--model-draft) that continues the target's hidden states",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) {
            return MakeHeadDrafter("eagle3", parameters, environment, environment.eagle3,
                                   "the drafter 'eagle3' needs an EAGLE-3 head: give one with -md FILE");
          }};
}

DrafterKind MtpKind() {
  return {"mtp", "the head for multi-token prediction in the model's own file",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) {
            return MakeHeadDrafter("mtp", parameters, environment, environment.mtp,
                                   "the drafter 'mtp' needs a head in the model's file; this one has none that can be "
                                   "used");
          }};
}

}  // namespace outrider
