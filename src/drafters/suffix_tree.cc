#include "drafters/suffix_tree.h"

#include <algorithm>

namespace outrider {
namespace {

constexpr int32_t kRoot = 0;
constexpr int32_t kNoNode = -1;

constexpr size_t kMinCapacity = 16;

// Capacities grow by half, so that appending takes amortised constant time and at most a third of the memory is unused.
constexpr size_t Grown(size_t capacity, size_t need) {
  while (capacity < need) capacity = std::max(kMinCapacity, capacity + capacity / 2);
  return capacity;
}

template <typename T>
void PushBack(std::vector<T>& items, T item) {
  items.reserve(Grown(items.capacity(), items.size() + 1));
  items.push_back(item);
}

// Edges may fill 3/4 of their table.
constexpr size_t SlotsFor(size_t edges) {
  return edges + (edges + 2) / 3;
}

uint32_t Hash(int32_t parent, Token first) {
  uint64_t key = (static_cast<uint64_t>(static_cast<uint32_t>(parent)) << 32) | static_cast<uint32_t>(first);
  key = (key ^ (key >> 31)) * 0x9E3779B97F4A7C15;
  key = (key ^ (key >> 32)) * 0xD6E8FEB86659FD93;
  return static_cast<uint32_t>(key >> 32);
}

}  // namespace

void SuffixTree::Append(Token token) {
  PushBack(text_, token);
  if (token < 0) {
    // The suffix that is being matched is in the tree already, as the beginning of an earlier passage, so it needs no
    // leaf.
    active_ = Cursor();
    PushBack(earlier_, Occurrence{});
    return;
  }
  Extend(token);
  NoteOccurrence();
}

// Ukkonen's step. Goes through the suffixes, beginning with the longest repeated one. Each suffix that was never
// followed by `next` before gets a leaf; the first one that was is the new longest repeated suffix, with `next`
// appended.
void SuffixTree::Extend(Token next) {
  int32_t unlinked = kNoNode;  // the node that was made just before; its link is the next node that is reached
  const auto link_to = [&](int32_t target) {
    if (unlinked != kNoNode) node(unlinked).link = target;
    unlinked = kNoNode;
  };
  for (;;) {
    const Child child = Settle(active_);
    const int32_t start = size() - 1 - Length(active_);
    if (child == kNone) {
      const int32_t here = active_.node_;
      link_to(here);
      const Child known = FindChild(here, next);
      if (known != kNone) return Step(active_, known);
      AddEdge(here, next, ~start);
      if (here == kRoot) return;
    } else {
      const Token follows = token(Start(child) + Length(active_));
      if (follows == next) return Step(active_, child);
      if (follows < 0) {
        // The only earlier occurrence ended with its document: the leaf is continued with the new text instead.
        SetChild(active_.node_, token(active_.label_), ~start);
      } else {
        const int32_t made = Split(active_, child, start);
        link_to(made);
        unlinked = made;
        AddEdge(made, next, ~start);
      }
    }
    DropFirst(active_);
  }
}

// Turns the place on the edge to `child` into a node; `start` is its latest occurrence.
int32_t SuffixTree::Split(const Cursor& place, Child child, int32_t start) {
  const auto made = static_cast<int32_t>(nodes_.size());
  const int32_t depth = Length(place);
  PushBack(nodes_, Node{start, depth, kRoot});
  SetChild(place.node_, token(place.label_), made);
  AddEdge(made, token(Start(child) + depth), child);
  return made;
}

// Records where the longest repeated suffix occurred before. Then the present occurrence becomes the most recent one of
// the deepest node above it.
void SuffixTree::NoteOccurrence() {
  const Child child = Settle(active_);
  PushBack(earlier_, FindAt(active_, child));
  node(active_.node_).start = size() - Length(active_);
}

// Moves the cursor's node down as far as it goes. Returns the child on whose edge the cursor is, kNone if it is at the
// node.
SuffixTree::Child SuffixTree::Settle(Cursor& cursor) const {
  while (cursor.below_ > 0) {
    const Child child = FindChild(cursor.node_, token(cursor.label_));
    if (child < 0) return child;
    const int32_t label_length = node(child).depth - node(cursor.node_).depth;
    if (cursor.below_ < label_length) return child;
    cursor.node_ = child;
    cursor.label_ += label_length;
    cursor.below_ -= label_length;
  }
  return kNone;
}

// Moves the cursor one token down the edge to `child`. The label is taken from the child, because the old label may
// have ended at a border.
void SuffixTree::Step(Cursor& cursor, Child child) const {
  cursor.label_ = Start(child) + node(cursor.node_).depth;
  ++cursor.below_;
}

// Moves the cursor to the longest proper suffix of its passage, which must not be empty.
void SuffixTree::DropFirst(Cursor& cursor) const {
  if (cursor.node_ != kRoot) {
    cursor.node_ = node(cursor.node_).link;
  } else {
    ++cursor.label_;
    --cursor.below_;
  }
}

void SuffixTree::Advance(Cursor& cursor, Token next) const {
  if (next < 0) {
    cursor = Cursor();
    return;
  }
  for (;;) {
    const Child child = Settle(cursor);
    if (child == kNone) {
      const Child known = FindChild(cursor.node_, next);
      if (known != kNone) return Step(cursor, known);
      if (cursor.node_ == kRoot) return;
    } else {
      const int32_t position = Start(child) + Length(cursor);
      if (position < size() && token(position) == next) return Step(cursor, child);
    }
    DropFirst(cursor);
  }
}

SuffixTree::Occurrence SuffixTree::Find(const Cursor& cursor) const {
  Cursor settled = cursor;
  const Child child = Settle(settled);
  return FindAt(settled, child);
}

SuffixTree::Occurrence SuffixTree::FindAt(const Cursor& settled, Child child) const {
  const int32_t length = Length(settled);
  if (length == 0) return {};
  return {Start(child == kNone ? settled.node_ : child) + length, length};
}

size_t SuffixTree::Slot(int32_t parent, Token first) const {
  const size_t slots = edges_.size();
  size_t slot = (static_cast<size_t>(Hash(parent, first)) * slots) >> 32;
  while (edges_[slot].parent != -1 && (edges_[slot].parent != parent || edges_[slot].first != first))
    slot = slot + 1 == slots ? 0 : slot + 1;
  return slot;
}

SuffixTree::Child SuffixTree::FindChild(int32_t parent, Token first) const {
  if (edges_.empty()) return kNone;
  const Edge& edge = edges_[Slot(parent, first)];
  return edge.parent == -1 ? kNone : edge.child;
}

void SuffixTree::AddEdge(int32_t parent, Token first, Child child) {
  if (SlotsFor(n_edges_ + 1) > edges_.size()) Rehash(Grown(edges_.size(), SlotsFor(n_edges_ + 1)));
  edges_[Slot(parent, first)] = {parent, first, child};
  ++n_edges_;
}

void SuffixTree::SetChild(int32_t parent, Token first, Child child) {
  edges_[Slot(parent, first)].child = child;
}

void SuffixTree::Rehash(size_t slots) {
  std::vector<Edge> old(slots);
  old.swap(edges_);
  for (const Edge& edge : old)
    if (edge.parent != -1) edges_[Slot(edge.parent, edge.first)] = edge;
}

void SuffixTree::Reserve(size_t tokens) {
  text_.reserve(tokens);
  earlier_.reserve(tokens);
  nodes_.reserve(tokens / 2);
  const size_t slots = SlotsFor(2 * tokens);
  if (slots > edges_.size()) Rehash(slots);
}

size_t SuffixTree::bytes() const {
  return text_.capacity() * sizeof(Token) + earlier_.capacity() * sizeof(Occurrence) +
         nodes_.capacity() * sizeof(Node) + edges_.capacity() * sizeof(Edge);
}

size_t SuffixTree::BytesWith(size_t more) const {
  // Each suffix gets at most one leaf, and each leaf adds at most one node. The suffixes that are still being matched
  // have no leaf yet and are counted too.
  const size_t leaves = static_cast<size_t>(Length(active_)) + more;
  const size_t tokens = text_.size() + more;
  return Grown(text_.capacity(), tokens) * sizeof(Token) + Grown(earlier_.capacity(), tokens) * sizeof(Occurrence) +
         Grown(nodes_.capacity(), nodes_.size() + leaves) * sizeof(Node) +
         Grown(edges_.size(), SlotsFor(n_edges_ + 2 * leaves)) * sizeof(Edge);
}

const char* SuffixTree::CheckInvariants() const {
  const auto same = [this](int32_t a, int32_t b, int32_t length) {
    return std::equal(text_.begin() + a, text_.begin() + a + length, text_.begin() + b);
  };
  std::vector<int> children(nodes_.size());
  size_t n_edges = 0;
  for (const Edge& edge : edges_) {
    if (edge.parent == -1) continue;
    ++n_edges;
    ++children[static_cast<size_t>(edge.parent)];
    const Node& parent = node(edge.parent);
    const int32_t start = Start(edge.child);
    if (token(start + parent.depth) != edge.first) return "an edge does not begin with its token";
    if (!same(start, parent.start, parent.depth)) return "a child does not begin like its parent";
    if (edge.child >= 0 && node(edge.child).depth <= parent.depth) return "a node is not deeper than its parent";
  }
  if (n_edges != n_edges_) return "edges are miscounted";
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& each = nodes_[i];
    const Node& link = node(each.link);
    if (children[i] < 2) return "a node does not branch";
    if (link.depth != each.depth - 1 || !same(each.start + 1, link.start, link.depth)) return "a link is wrong";
  }
  for (int32_t end = 1; end <= size(); ++end) {
    const Occurrence earlier = Earlier(end);
    if (earlier.next >= end || earlier.length > earlier.next) return "an earlier occurrence is not earlier";
    if (!same(end - earlier.length, earlier.next - earlier.length, earlier.length)) return "an occurrence is wrong";
  }
  return "";
}

}  // namespace outrider
