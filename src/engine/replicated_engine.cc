#include "engine/replicated_engine.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.h"

namespace outrider {
namespace {

constexpr std::chrono::microseconds kPollInterval{500};  // how often drafters are asked for more tokens
constexpr size_t kWindow = 4;                            // new tokens with which another replica begins at once
constexpr size_t kMinAhead = 2;     // new tokens with which it begins later; one alone would save no step
constexpr size_t kMaxMissing = 32;  // missing tokens that a replica may decode together with rows ahead

bool OneSequence(const Batch& batch) {
  return batch.rows().front().seq == batch.rows().back().seq;
}

}  // namespace

// An engine, the thread that drives it, and the tokens in its memory. Everything except Run and what it calls is used
// by the caller's thread.
class ReplicatedEngine::Replica {
 public:
  explicit Replica(Engine& engine)
      : engine_(engine),
        memory_(static_cast<size_t>(engine.info().n_sequences)),
        adapters_(static_cast<size_t>(engine.info().n_sequences)),
        thread_([this] { Run(); }) {}

  ~Replica() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Begins to decode the rows of `batch`, which come after `texts`. Only for idle replicas.
  void Begin(const Batch& batch, std::span<const std::vector<Token>> texts) {
    (void)Settle();  // of rows ahead that were not used
    rows_.clear();
    Batch last;
    last.Clear(batch.adapters());
    parts_.assign(1, last);
    int room = engine_.info().max_batch - batch.size();
    const std::vector<BatchRow>& all = batch.rows();
    for (size_t i = 0; i < all.size();) {
      const SeqId seq = all[i].seq;
      ReadUp(seq, texts[static_cast<size_t>(seq)], &room, &last);
      for (; i < all.size() && all[i].seq == seq; ++i) {
        rows_.push_back(last.Add(all[i]));
        MemoryOf(seq).push_back(all[i].token);
      }
    }
    parts_.back() = std::move(last);
    first_pos_ = all.front().pos;
    seq_ = all.front().seq;
    {
      const std::lock_guard lock(mutex_);
      running_ = true;
    }
    changed_.notify_all();
  }

  bool running() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }

  // Waits up to `duration`. Returns whether the replica is done.
  bool WaitFor(Duration duration) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, duration, [this] { return !running_; });
  }

  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !running_; });
  }

  // Ends the work of a replica that is done, and returns its status. After a failure the memory of the sequences is
  // cleared.
  Status Settle() {
    assert(!running());
    Status status = std::exchange(status_, Status());
    const bool asked_for = !std::exchange(works_ahead_, false);
    ahead_from_ = kNothing;
    if (status.ok()) return status;
    if (!asked_for) {
      LogError("another copy of the model failed and is not used any more: {}", status.message());
      given_up_ = true;
    }
    for (const Batch& part : parts_) {
      for (const BatchRow& row : part.rows()) {
        engine_.TruncateTo(row.seq, 0);
        MemoryOf(row.seq).clear();
      }
    }
    return status;
  }

  // The rows that it was given last are rows ahead: nobody has asked for them yet. Those from position `from` on have
  // logits.
  void MarkAhead() { works_ahead_ = true; }
  void HasLogitsFrom(Pos from) { ahead_from_ = from; }

  // Whether it may be given rows.
  bool Idle() {
    if (running()) return false;
    if (!status_.ok()) (void)Settle();
    return !given_up_;
  }

  // All tokens of `seq` in this replica's memory, rows ahead included, if they begin with `text` and were computed with
  // `adapters`; else empty.
  std::span<const Token> TokensAhead(SeqId seq, std::span<const Token> text, const AdapterSet& adapters) const {
    const bool about_it = ahead_from_ != kNothing && seq == seq_ && Shared(seq, text, adapters) == text.size();
    return about_it ? memory_[static_cast<size_t>(seq)] : std::span<const Token>();
  }
  Pos ahead_from() const { return ahead_from_; }

  Pos first_pos() const { return first_pos_; }  // of the rows it was given last

  // How many tokens of `text` with these adapters are in its memory of `seq`.
  size_t Shared(SeqId seq, std::span<const Token> text, const AdapterSet& adapters) const {
    const auto place = static_cast<size_t>(seq);
    return adapters_[place] == adapters ? CommonPrefix(memory_[place], text) : 0;
  }

  // Only for idle replicas.
  void LayOut(std::span<const SequenceRows> step, StepLayout* layout) const {
    assert(!running());
    engine_.LayOut(step, layout);
  }

  // Logits of one of the rows that it was given last.
  std::span<const float> Logits(int row) { return engine_.Logits(rows_[static_cast<size_t>(row)]); }

 private:
  static constexpr Pos kNothing = -1;

  std::vector<Token>& MemoryOf(SeqId seq) { return memory_[static_cast<size_t>(seq)]; }

  // Drops the tokens of `seq` that differ from `text` and adds rows for those that are missing: to `last` if there is
  // room, else in parts before it.
  void ReadUp(SeqId seq, std::span<const Token> text, int* room, Batch* last) {
    std::vector<Token>& memory = MemoryOf(seq);
    const AdapterSet& adapters = last->adapters();
    memory.resize(static_cast<size_t>(engine_.TruncateTo(seq, static_cast<Pos>(Shared(seq, text, adapters)))));
    adapters_[static_cast<size_t>(seq)] = adapters;
    const auto missing = static_cast<int>(text.size() - memory.size());
    const bool fits = missing <= *room;
    if (fits) *room -= missing;
    while (memory.size() < text.size()) {
      Batch& part = fits ? *last : parts_.back();
      part.Add({text[memory.size()], static_cast<Pos>(memory.size()), seq, false});
      memory.push_back(text[memory.size()]);
      if (!fits && (part.size() == engine_.info().max_batch || memory.size() == text.size())) {
        parts_.emplace_back();
        parts_.back().Clear(adapters);
      }
    }
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return running_ || stopping_; });
      if (stopping_) return;
      lock.unlock();
      Status status;
      for (size_t i = 0; status.ok() && !stopping_ && i < parts_.size(); ++i) status = engine_.Decode(parts_[i]);
      if (status.ok() && !stopping_) WaitForLogits();
      lock.lock();
      status_ = std::move(status);
      running_ = false;
      changed_.notify_all();
    }
  }

  // On some backends Decode only starts the computation. Reading logits waits for its end.
  void WaitForLogits() {
    const std::vector<BatchRow>& rows = parts_.back().rows();
    const auto last = std::find_if(rows.rbegin(), rows.rend(), [](const BatchRow& row) { return row.wants_logits; });
    if (last != rows.rend()) engine_.Logits(static_cast<int>(rows.rend() - last) - 1);
  }

  Engine& engine_;
  std::vector<std::vector<Token>> memory_;  // by sequence, including rows that are being decoded
  std::vector<AdapterSet> adapters_;        // with which they were computed
  SeqId seq_ = 0;                           // of the first of the rows that it was given last
  Pos first_pos_ = 0;                       // likewise
  std::vector<int> rows_;                   // where in the last part each of them is
  Pos ahead_from_ = kNothing;
  bool works_ahead_ = false, given_up_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  std::atomic<bool> stopping_ = false;
  // Used by the replica's thread while running_, else by the caller's thread.
  std::vector<Batch> parts_;
  Status status_;

  std::thread thread_;
};

ReplicatedEngine::ReplicatedEngine(const std::vector<Engine*>& replicas, const Clock& clock)
    : info_(replicas.front()->info()),
      texts_(static_cast<size_t>(info_.n_sequences)),
      adapters_(texts_.size()),
      clock_(clock) {
  assert(info_.rollback == Rollback::kDropCells && "a replica could not be brought up to the text");
  for (Engine* engine : replicas) replicas_.push_back(std::make_unique<Replica>(*engine));
}

ReplicatedEngine::~ReplicatedEngine() = default;

Status ReplicatedEngine::Decode(const Batch& batch) {
  const TimePoint start = clock_.Now();
  Replica* const begun = FindBegun(batch);
  was_begun_ahead_ = begun != nullptr;
  serving_ = begun != nullptr ? begun : &ChooseIdle(batch);
  if (begun == nullptr) serving_->Begin(batch, texts_);
  first_row_ = batch.rows().front().pos - serving_->first_pos();
  const bool may_look = source_ != nullptr && OneSequence(batch) && batch.rows().back().wants_logits;
  if (may_look) {
    do LookAhead(batch, start);
    while (!serving_->WaitFor(kPollInterval));
  }
  serving_->Wait();
  Status status = serving_->Settle();
  if (!status.ok()) return begun != nullptr ? Decode(batch) : status;  // if rows ahead failed, decode them again
  for (const BatchRow& row : batch.rows()) {
    texts_[static_cast<size_t>(row.seq)].push_back(row.token);
    adapters_[static_cast<size_t>(row.seq)] = batch.adapters();
  }
  if (begun == nullptr && may_look) usual_time_ += (clock_.Now() - start - usual_time_) / 4;
  return {};
}

// Sets `assumed_` to the text of the sequence if all rows of `batch` are right. All rows belong to one sequence.
void ReplicatedEngine::Assume(const Batch& batch) {
  assumed_ = texts_[static_cast<size_t>(batch.rows().front().seq)];
  for (const BatchRow& row : batch.rows()) assumed_.push_back(row.token);
}

// The replica that has already begun with exactly these rows; null if there is none.
ReplicatedEngine::Replica* ReplicatedEngine::FindBegun(const Batch& batch) {
  if (!OneSequence(batch)) return nullptr;
  const BatchRow& first = batch.rows().front();
  Assume(batch);
  for (const auto& replica : replicas_) {
    const auto tokens_ahead = replica->TokensAhead(first.seq, assumed_, batch.adapters());
    if (!tokens_ahead.empty() && replica->ahead_from() <= first.pos) return replica.get();
  }
  return nullptr;
}

// How many tokens before the rows of `batch` are not in the replica's memory.
size_t ReplicatedEngine::Missing(const Replica& replica, const Batch& batch) const {
  size_t missing = 0;
  for (SeqId last = -1; const BatchRow& row : batch.rows()) {
    if (row.seq == last) continue;
    last = row.seq;
    const std::vector<Token>& text = texts_[static_cast<size_t>(row.seq)];
    missing += text.size() - replica.Shared(row.seq, text, batch.adapters());
  }
  return missing;
}

// The idle replica with the fewest missing tokens. Usually one is idle, because never all replicas work ahead. If all
// others were given up after failures, waits for the last one; if that one fails too, the caller gets its error.
ReplicatedEngine::Replica& ReplicatedEngine::ChooseIdle(const Batch& batch) {
  for (const bool wait : {false, true}) {
    Replica* best = nullptr;
    size_t min_missing = 0;
    for (const auto& replica : replicas_) {
      if (wait) replica->Wait();
      if (!replica->Idle()) continue;
      const size_t missing = Missing(*replica, batch);
      if (best != nullptr && missing >= min_missing) continue;
      best = replica.get();
      min_missing = missing;
    }
    if (best != nullptr) return *best;
  }
  return *replicas_.front();
}

// Lets an idle replica begin with the tokens that are expected after `batch`, as soon as they are worth a step: when
// there are kWindow new tokens, or only kMinAhead of them when half of a usual step's time has passed. A replica that
// misses many tokens reads these first, without rows ahead.
void ReplicatedEngine::LookAhead(const Batch& batch, TimePoint begun_at) {
  const SeqId seq = batch.rows().front().seq;
  const auto may_begin = [&](Replica& replica) { return &replica != serving_ && replica.Idle(); };
  if (std::none_of(replicas_.begin(), replicas_.end(), [&](const auto& r) { return may_begin(*r); })) return;
  source_->ListTokensAhead(seq, &ahead_);
  if (ahead_.empty()) return;
  const std::vector<Token>& text = texts_[static_cast<size_t>(seq)];
  Assume(batch);
  const size_t verified = assumed_.size();
  assumed_.insert(assumed_.end(), ahead_.begin(), ahead_.end());

  size_t begun = verified;
  Replica* idle = nullptr;
  for (const auto& replica : replicas_) {
    if (replica.get() == serving_) continue;
    const auto right = std::span<const Token>(assumed_).first(verified);
    const auto tokens_ahead = replica->TokensAhead(seq, right, batch.adapters());
    if (tokens_ahead.size() > verified) {
      begun = std::max(begun, CommonPrefix(tokens_ahead, assumed_));
    } else if (may_begin(*replica)) {
      idle = replica.get();
    }
  }
  if (idle == nullptr) return;
  const bool reads = Missing(*idle, batch) > kMaxMissing;
  const auto end =
      std::min({reads ? verified : assumed_.size(), text.size() + static_cast<size_t>(info_.max_batch),
                begun + static_cast<size_t>(info_.max_outputs), static_cast<size_t>(info_.sequence_length)});
  const size_t fresh = end - std::min(end, begun);
  const bool late = clock_.Now() - begun_at > usual_time_ / 2;
  if (!reads && (fresh < kMinAhead || (fresh < kWindow && !late))) return;
  rows_ahead_.Clear(batch.adapters());
  for (size_t pos = text.size(); pos < end; ++pos) {
    rows_ahead_.Add({assumed_[pos], static_cast<Pos>(pos), seq, pos >= begun});
  }
  idle->Begin(rows_ahead_, texts_);
  idle->MarkAhead();
  if (!reads) idle->HasLogitsFrom(static_cast<Pos>(begun));
}

std::span<const float> ReplicatedEngine::Logits(int row) {
  return serving_->Logits(first_row_ + row);
}

// A replica cannot be asked for its layout while its thread computes. The one that served the last step never does
// between two steps. Another one may serve the next step, and may have to decode missing tokens of each sequence before
// the step's rows. These change the parts if there are several sequences.
void ReplicatedEngine::LayOut(std::span<const SequenceRows> step, StepLayout* layout) const {
  (serving_ != nullptr ? *serving_ : *replicas_.front()).LayOut(step, layout);
  layout->certain = step.size() == 1;
}

Status ReplicatedEngine::ProvideHidden(std::span<const int>) {
  return Unsupported("hidden states cannot be read while there are replicas of the model (--replica)");
}

std::span<const float> ReplicatedEngine::Hidden(int) {
  assert(false && "ProvideHidden failed");
  return {};
}

Pos ReplicatedEngine::TruncateTo(SeqId seq, Pos length) {
  std::vector<Token>& text = texts_[static_cast<size_t>(seq)];
  text.resize(std::min(text.size(), static_cast<size_t>(length)));
  return static_cast<Pos>(text.size());
}

std::span<const Token> ReplicatedEngine::BegunAhead(SeqId seq, std::span<const Token> text) const {
  for (const auto& replica : replicas_) {
    const std::span<const Token> tokens_ahead = replica->TokensAhead(seq, text, adapters_[static_cast<size_t>(seq)]);
    if (!tokens_ahead.empty() && replica->ahead_from() < static_cast<Pos>(text.size())) {
      return tokens_ahead.subspan(text.size() - 1);
    }
  }
  return {};
}

Result<std::vector<uint8_t>> ReplicatedEngine::SaveSequence(SeqId) {
  return Unsupported("slots cannot be saved while there are replicas of the model (--replica)");
}

Status ReplicatedEngine::RestoreSequence(SeqId seq, std::span<const uint8_t>, Pos) {
  TruncateTo(seq, 0);
  return Unsupported("slots cannot be restored while there are replicas of the model (--replica)");
}

}  // namespace outrider
