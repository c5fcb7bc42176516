#include "drafters/suffix_drafter.h"

#include <algorithm>
#include <tuple>

namespace outrider {
namespace {

constexpr int kVotersPerTree = 8;
constexpr size_t kLongestRematch = 64;     // tokens; a longer match would say no more
constexpr size_t kUsualAnswer = 1024;      // tokens that memory is set aside for
constexpr size_t kAbsorbedAtEnd = 2048;    // tokens of past requests: about a millisecond, and enough for most
constexpr size_t kAbsorbedPerCommit = 64;  // the rest of long ones

bool BeginsWith(std::span<const Token> text, std::span<const Token> beginning) {
  return beginning.size() <= text.size() && std::equal(beginning.begin(), beginning.end(), text.begin());
}

// What is like the end of a sequence that stands at `cursor`, once the draft is appended to it.
SuffixTree::Occurrence FindAfter(const SuffixTree& tree, SuffixTree::Cursor cursor, const Draft& draft) {
  for (const DraftToken& drafted : draft.tokens) tree.Advance(cursor, drafted.token);
  return tree.Find(cursor);
}

// A place in a text that was like the end of the sequence, and what follows it.
struct Voter {
  std::span<const Token> text;
  size_t next;
  int32_t length;  // tokens in common before `next`
  bool own;        // in the sequence's own text, which the draft continues
};

// What a voter says comes next. Past the end of its own text the sequence goes on with the draft: repetition can be
// drafted further than it has gone.
Token Vote(const Voter& voter, const Draft& draft) {
  if (voter.next < voter.text.size()) return voter.text[voter.next];
  if (!voter.own) return kNoToken;
  return draft.tokens[voter.next - voter.text.size()].token;
}

// Few enough to be kept on the stack, and to be compared one by one.
struct Voters {
  static constexpr size_t kMost = size_t{3} * kVotersPerTree;
  std::array<Voter, kMost> items;
  size_t size = 0;

  std::span<const Voter> span() const { return {items.data(), size}; }

  // The places that are found from `found` back in time, longest matches first.
  void Add(const SuffixTree& tree, SuffixTree::Occurrence found, bool own) {
    for (int i = 0; i < kVotersPerTree && found.length > 0; ++i) {
      items[size++] = {tree.text(), static_cast<size_t>(found.next), found.length, own};
      const SuffixTree::Occurrence earlier = tree.Earlier(found.next);
      found = {earlier.next, std::min(found.length, earlier.length)};
    }
  }

  // Those that vote for `token` go on, the others leave.
  void KeepAgreeing(Token token, const Draft& draft) {
    size_t kept = 0;
    for (const Voter& voter : span())
      if (Vote(voter, draft) == token) items[kept++] = {voter.text, voter.next + 1, voter.length + 1, voter.own};
    size = kept;
  }
};

// A token that somebody voted for.
struct Choice {
  Token token;
  int32_t longest;  // match among its voters
  float votes;
};

struct Ballot {
  Token token = kNoToken;
  float confidence = 0;
};

// The longest match decides, and among equals the number of votes. Each vote counts by its match for the confidence:
// agreeing votes over all votes and two for the unseen. This fits what is measured closely (docs/drafters/suffix.md).
Ballot Elect(const Voters& voters, const Draft& draft) {
  constexpr float kUnseen = 2;
  std::array<Choice, Voters::kMost> choices;
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
  // The next turn of a conversation begins with the last one, whose tree is already there.
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

size_t SuffixDrafter::running_bytes() const {
  size_t sum = 0;
  for (const Sequence& sequence : sequences_) sum += sequence.own.bytes();
  return sum;
}

// Brings all that is known of the sequence up to `history`. Returns its owner's past.
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

// Starts over, a little way back, where the tree is another one or has grown: it may know longer matches now.
void SuffixDrafter::Follow(Follower& follower, const SuffixMemory::Generation& generation,
                           std::span<const Token> history) {
  const SuffixTree& tree = generation.tree;
  const size_t from = history.size() - std::min(history.size(), kLongestRematch);
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
