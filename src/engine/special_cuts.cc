#include "engine/special_cuts.h"

#include <algorithm>

namespace outrider {
namespace {

using Children = std::vector<std::pair<unsigned char, uint32_t>>;

template <typename List>
auto Place(List& children, unsigned char byte) {
  return std::lower_bound(children.begin(), children.end(), byte,
                          [](const auto& child, unsigned char wanted) { return child.first < wanted; });
}

}  // namespace

void SpecialCuts::Add(std::string_view text, bool strips_right) {
  if (text.empty()) return;
  uint32_t at = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const uint32_t* child = Child(nodes_[at], byte)) {
      at = *child;
      continue;
    }
    const auto added = static_cast<uint32_t>(nodes_.size());
    nodes_.emplace_back();
    Children& children = nodes_[at].children;
    children.insert(Place(children, byte), {byte, added});
    at = added;
  }
  nodes_[at].ends = true;
  nodes_[at].strips_right = nodes_[at].strips_right || strips_right;
}

const uint32_t* SpecialCuts::Child(const Node& node, unsigned char byte) const {
  const auto found = Place(node.children, byte);
  return found != node.children.end() && found->first == byte ? &found->second : nullptr;
}

size_t SpecialCuts::Longest(std::string_view text, bool* strips_right) const {
  size_t longest = 0;
  uint32_t at = 0;
  for (size_t length = 0; length < text.size();) {
    const uint32_t* child = Child(nodes_[at], static_cast<unsigned char>(text[length]));
    if (child == nullptr) break;
    at = *child;
    ++length;
    if (!nodes_[at].ends) continue;
    longest = length;
    *strips_right = nodes_[at].strips_right;
  }
  return longest;
}

std::vector<size_t> SpecialCuts::Find(std::string_view text) const {
  std::vector<size_t> cuts;
  size_t reach = 0;      // the furthest end of those that begin before `at`
  size_t candidate = 0;  // the end of one that nothing before it overlaps; 0 = none
  size_t since_cut = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    if (candidate == at && at > 0) {
      // Nothing that begins within it goes further, so it is certainly found.
      if (reach == at && ++since_cut >= kTokensPerPiece) {
        cuts.push_back(at);
        since_cut = 0;
      }
      candidate = 0;
    }
    bool strips_right = false;
    const size_t length = Longest(text.substr(at), &strips_right);
    if (length == 0) continue;
    if (at >= reach) candidate = strips_right ? 0 : at + length;
    reach = std::max(reach, at + length);
  }
  return cuts;
}

}  // namespace outrider
