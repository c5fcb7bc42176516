#include "drafters/suffix_drafter.h"

#include <algorithm>
#include <tuple>

namespace outrider {
namespace {

constexpr int kVotersPerTree = 8;
constexpr size_t kMaxRematch = 64;         // tokens: longer matches would not predict better
constexpr size_t kUsualAnswer = 1024;      // tokens of an answer for which memory is reserved
constexpr size_t kAbsorbedAtEnd = 2048;    // tokens of past requests: takes about a millisecond, and is enough for most
constexpr size_t kAbsorbedPerCommit = 64;  // tokens: the rest of long requests

bool BeginsWith(std::span<const Token> text, std::span<const Token> beginning) {
  return beginning.size() <= text.size() && std::equal(beginning.begin(), beginning.end(), text.begin());
}

// Where the end of the sequence, with the draft appended, occurs in the tree. `cursor` is at the end of the sequence.
SuffixTree::Occurrence FindAfter(const SuffixTree& tree, SuffixTree::Cursor cursor, const Draft& draft) {
  for (const DraftToken& drafted : draft.tokens) tree.Advance(cursor, drafted.token);
  return tree.Find(cursor);
}

// A place in a text whose preceding tokens are the same as at the end of the sequence. It votes for the token that
// follows there.
struct Voter {
  std::span<const Token> text;
  size_t next;
  int32_t length;  // tokens in common before `next`
  bool own;        // in the sequence's own text, which the draft continues
};

// The token that a voter predicts. After the sequence's own text the draft follows, so a repetition can be drafted for
// longer than it has lasted in the text.
Token Vote(const Voter& voter, const Draft& draft) {
  if (voter.next < voter.text.size()) return voter.text[voter.next];
  if (!voter.own) return kNoToken;
  return draft.tokens[voter.next - voter.text.size()].token;
}

// Few enough to be kept on the stack, and to be compared one by one.
struct Voters {
  static constexpr size_t kMax = size_t{3} * kVotersPerTree;
  std::array<Voter, kMax> items;
  size_t size = 0;

  std::span<const Voter> span() const { return {items.data(), size}; }

  // Adds the place `found` and earlier places that match, longest matches first.
  void Add(const SuffixTree& tree, SuffixTree::Occurrence found, bool own) {
    for (int i = 0; i < kVotersPerTree && found.length > 0; ++i) {
      items[size++] = {tree.text(), static_cast<size_t>(found.next), found.length, own};
      const SuffixTree::Occurrence earlier = tree.Earlier(found.next);
      found = {earlier.next, std::min(found.length, earlier.length)};
    }
  }

  // Keeps the voters that voted for `token` and moves them on by one token; removes the others.
  void KeepAgreeing(Token token, const Draft& draft) {
    size_t kept = 0;
    for (const Voter& voter : span())
      if (Vote(voter, draft) == token) items[kept++] = {voter.text, voter.next + 1, voter.length + 1, voter.own};
    size = kept;
  }
};

// A token with at least one vote.
struct Choice {
  Token token;
  int32_t longest;  // match among its voters
  float votes;
};

struct Ballot {
  Token token = kNoToken;
  float confidence = 0;
};

// Elects the token with the longest match; among equal lengths, the one with the most votes. A vote has the weight of
// its match length. The confidence is the weight of the votes for the token, divided by the weight of all votes plus 2
// for continuations never seen. This fits the measurements closely (docs/drafters/suffix.md).
Ballot Elect(const Voters& voters, const Draft& draft) {
  constexpr float kUnseen = 2;
  std::array<Choice, Voters::kMax> choices;
  auto end = choices.begin();
  float all = kUnseen;
  for (const Voter& voter : voters.span()) {
    const Token token = Vote(voter, draft);
    if (token < 0) continue;
    auto choice = std::find_if(choices.begin(), end, [&](const Choice& known) { return known.token == token; });
    if (choice == end) *end++ = {token, 0, 0};
    choice->longest = std::max(choice->longest, voter.length);
    choice->votes += static_cast<float>(voter.length);
    all += static_cast<float>(voter.length);
  }
  if (end == choices.begin()) return {};
  const auto best = std::max_element(choices.begin(), end, [](const Choice& a, const Choice& b) {
    return std::tie(a.longest, a.votes) < std::tie(b.longest, b.votes);
  });
  return {best->token, best->votes / all};
}

void AppendToken(Draft& draft, const Ballot& ballot) {
  const bool with_distributions = !draft.distributions.empty();
  draft.tokens.push_back({ballot.token, ballot.confidence, kNoDrafter});
  if (with_distributions) draft.distributions.push_back({{ballot.token, 1.0f}});
}

}  // namespace

SuffixDrafter::SuffixDrafter(int n_sequences, const SuffixOptions& options)
    : Drafter({.name = "suffix"}), sequences_(static_cast<size_t>(n_sequences)) {
  if (options.remember) memory_.emplace(options.memory_bytes);
}

void SuffixDrafter::Begin(SeqId seq, std::span<const Token> history, const DraftContext& context) {
  Sequence& sequence = sequences_[static_cast<size_t>(seq)];
  sequence.owner = context.owner;
  sequence.followers = {};
  // The prompt of a conversation's next turn begins with the text of the last one, whose tree is kept.
  if (!BeginsWith(history, sequence.own.text())) sequence.own = SuffixTree();
  sequence.own.Reserve(history.size() + kUsualAnswer);
  Read(sequence, history);
}

void SuffixDrafter::Commit(SeqId seq, const CommittedStep& step) {
  if (memory_) memory_->Absorb(kAbsorbedPerCommit);
  Read(sequences_[static_cast<size_t>(seq)], step.history);
}

void SuffixDrafter::Propose(std::span<Proposal*> proposals) {
  for (Proposal* proposal : proposals) {
    Sequence& sequence = sequences_[static_cast<size_t>(proposal->seq)];
    const SuffixMemory::Generations past = Read(sequence, proposal->history);
    Continue(sequence, past, *proposal);
  }
}

void SuffixDrafter::End(SeqId seq, std::span<const Token> history, bool complete) {
  if (!complete || !memory_) return;
  memory_->Remember(sequences_[static_cast<size_t>(seq)].owner, history);
  memory_->Absorb(kAbsorbedAtEnd);
}

// Brings the sequence's tree and cursors up to the end of `history`. Returns the trees of its owner's past requests.
SuffixMemory::Generations SuffixDrafter::Read(Sequence& sequence, std::span<const Token> history) {
  SuffixTree& own = sequence.own;
  if (own.text().size() > history.size()) own = SuffixTree();
  for (const Token token : history.subspan(own.text().size())) own.Append(token);
  if (!memory_) return {};
  const SuffixMemory::Generations past = memory_->Find(sequence.owner);
  for (size_t i = 0; i < past.size(); ++i)
    if (past[i]) Follow(sequence.followers[i], *past[i], history);
  return past;
}

// Moves the follower's cursor to the end of `history`. If the tree was replaced or has grown, it may have longer
// matches now, so the cursor starts again kMaxRematch tokens before the end.
void SuffixDrafter::Follow(Follower& follower, const SuffixMemory::Generation& generation,
                           std::span<const Token> history) {
  const SuffixTree& tree = generation.tree;
  const size_t from = history.size() - std::min(history.size(), kMaxRematch);
  if (follower.generation != generation.id || follower.tree_size != tree.text().size() || follower.read < from ||
      follower.read > history.size())
    follower = {generation.id, tree.text().size(), from, {}};
  for (; follower.read < history.size(); ++follower.read) tree.Advance(follower.cursor, history[follower.read]);
}

void SuffixDrafter::Continue(const Sequence& sequence, const SuffixMemory::Generations& past, Proposal& proposal) {
  Draft& draft = proposal.draft;
  Voters voters;
  voters.Add(sequence.own, draft.empty() ? sequence.own.Last() : FindAfter(sequence.own, sequence.own.End(), draft),
             /*own=*/true);
  for (size_t i = 0; i < past.size(); ++i)
    if (past[i])
      voters.Add(past[i]->tree, FindAfter(past[i]->tree, sequence.followers[i].cursor, draft), /*own=*/false);

  double survival = 1;
  for (const DraftToken& drafted : draft.tokens) survival *= drafted.confidence;
  while (draft.size() < proposal.max_tokens) {
    const Ballot ballot = Elect(voters, draft);
    survival *= ballot.confidence;
    if (ballot.token == kNoToken || ballot.confidence < proposal.p_min || survival < proposal.min_survival) return;
    voters.KeepAgreeing(ballot.token, draft);
    AppendToken(draft, ballot);
  }
}

DrafterKind SuffixKind() {
  return {"suffix", "what followed the end of the text where it occurred before, in this or past requests",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            SuffixOptions options;
            options.remember = parameters.Flag("remember", environment.remember);
            options.memory_bytes = static_cast<size_t>(parameters.Integer("memory_mib", 64, 1, 1 << 20)) << 20;
            return std::unique_ptr<Drafter>(std::make_unique<SuffixDrafter>(environment.n_sequences, options));
          }};
}

}  // namespace outrider
