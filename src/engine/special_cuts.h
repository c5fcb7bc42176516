// SpecialCuts: where a long text can be cut so that tokenising the pieces one by one gives the same tokens.
//
// A tokenizer first finds the texts of special tokens, longest first, and then tokenises what lies between them.
// libllama needs the square of the number of special tokens in a text for that; in pieces it does not. A text can be
// cut after the text of a special token that is certainly found, which it is if it overlaps with no other one that is
// not a part of it.
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace outrider {

class SpecialCuts {
 public:
  static constexpr size_t kTokensPerPiece = 64;

  // Adds the text of a special token. After one that takes the space that follows (`strips_right`) there is no cut.
  void Add(std::string_view text, bool strips_right);

  // The ends of all pieces but the last, ascending; each piece has at least kTokensPerPiece special tokens.
  std::vector<size_t> Find(std::string_view text) const;

 private:
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> children;  // ascending in the byte
    bool ends = false;                                         // a special token's text
    bool strips_right = false;
  };

  // The longest special token's text that begins `text`; 0 if there is none. Sets *strips_right for that one.
  size_t Longest(std::string_view text, bool* strips_right) const;
  const uint32_t* Child(const Node& node, unsigned char byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);  // of the tree of all texts; the first is the root
};

}  // namespace outrider
