// SuffixTree: every passage of a growing text, and where each occurred before.
//
// Built online (Ukkonen): Append takes amortised constant time, and afterwards the longest suffix of the text that
// occurred earlier is known with one such occurrence. Earlier(p) leads from an occurrence to an earlier one with
// the longest match, so a few steps collect what followed a passage in the past, longest match first.
//
// A Cursor follows another text: after each Advance it stands at the longest suffix of that text which occurs in the
// tree, again in amortised constant time. Appending to the tree leaves cursors valid, but they do not learn of longer
// matches that it brings.
//
// A negative token is a border: it equals nothing, not even itself, so no passage reaches across. Put one between
// documents.
//
// Everything lies in four flat arrays, about 50 bytes a token. Positions are 32 bits, so a tree holds at most 2^31 - 1
// tokens. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/token.h"

namespace outrider {

class SuffixTree {
 public:
  // A place in the text with something in common with the passage it was looked up for.
  struct Occurrence {
    int32_t next = 0;    // position after it: where its continuation begins
    int32_t length = 0;  // tokens before `next` that are the same; 0 = there is no occurrence
  };

  class Cursor {
    friend class SuffixTree;
    int32_t node_ = 0;   // the deepest node above the place
    int32_t label_ = 0;  // a position in the text where the tokens below that node are written
    int32_t below_ = 0;  // how many they are
  };

  void Append(Token token);

  std::span<const Token> text() const { return text_; }

  // Of the longest suffix of the whole text that occurred before.
  Occurrence Last() const { return earlier_.empty() ? Occurrence{} : earlier_.back(); }

  // Of the longest suffix of text[0 .. position) that occurred before. 0 < position <= text().size().
  Occurrence Earlier(int32_t position) const { return earlier_[static_cast<size_t>(position) - 1]; }

  // A cursor at the end of this tree's own text.
  Cursor End() const { return active_; }

  void Advance(Cursor& cursor, Token token) const;

  // Tokens matched, and a recent occurrence of them.
  int32_t Length(const Cursor& cursor) const { return node(cursor.node_).depth + cursor.below_; }
  Occurrence Find(const Cursor& cursor) const;

  // Reserves memory for a text of about `tokens` tokens. Without this, or for longer texts, arrays grow by half.
  void Reserve(size_t tokens);

  // Bytes of memory in use, and the max number of bytes after `more` tokens.
  size_t bytes() const;
  size_t BytesWith(size_t more) const;

  // For tests, slow: "" or what is broken.
  const char* CheckInvariants() const;

 private:
  // A passage that was followed by different tokens. Its text is text_[start .. start + depth).
  struct Node {
    int32_t start;
    int32_t depth;
    int32_t link;  // the node of this passage without its first token
  };

  // A node, or a leaf: a passage from ~child to the end of the text that occurred only there.
  using Child = int32_t;
  static constexpr Child kNone = INT32_MAX;

  // An edge of the tree, in an open-addressing table.
  struct Edge {
    int32_t parent = -1;  // -1 = free
    Token first = 0;
    Child child = 0;
  };

  const Node& node(int32_t index) const { return nodes_[static_cast<size_t>(index)]; }
  Node& node(int32_t index) { return nodes_[static_cast<size_t>(index)]; }
  Token token(int32_t position) const { return text_[static_cast<size_t>(position)]; }
  int32_t size() const { return static_cast<int32_t>(text_.size()); }
  int32_t Start(Child child) const { return child < 0 ? ~child : node(child).start; }

  size_t Slot(int32_t parent, Token first) const;
  Child FindChild(int32_t parent, Token first) const;
  void AddEdge(int32_t parent, Token first, Child child);
  void SetChild(int32_t parent, Token first, Child child);
  void Rehash(size_t slots);

  Child Settle(Cursor& cursor) const;
  Occurrence FindAt(const Cursor& settled, Child child) const;
  void Step(Cursor& cursor, Child child) const;
  void DropFirst(Cursor& cursor) const;
  void Extend(Token next);
  int32_t Split(const Cursor& place, Child child, int32_t start);
  void NoteOccurrence();

  std::vector<Token> text_;
  std::vector<Occurrence> earlier_;        // per position: of the longest repeated suffix that ends there
  std::vector<Node> nodes_ = {{0, 0, 0}};  // the first is the root: the empty passage
  std::vector<Edge> edges_;
  size_t n_edges_ = 0;
  Cursor active_;  // the longest repeated suffix of the text
};

}  // namespace outrider
