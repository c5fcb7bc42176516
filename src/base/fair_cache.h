// FairCache: items that belong to owners and take up to a number of bytes together.
//
// When they take more, the owner with the most bytes loses the item that was used least recently: nobody can displace
// the items of somebody who keeps less. Whose items may be looked at is the caller's business.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {

template <typename Item>
class FairCache {
 public:
  struct Entry {
    std::string owner;
    Item item;
    uint64_t bytes;
  };
  using Entries = std::list<Entry>;
  using Place = typename Entries::iterator;

  explicit FairCache(uint64_t max_bytes) : max_bytes_(max_bytes) {}

  uint64_t max_bytes() const { return max_bytes_; }
  uint64_t bytes() const { return bytes_; }
  Entries& entries() { return entries_; }  // the one used last comes first
  const Entries& entries() const { return entries_; }

  void MarkUsed(Place place) { entries_.splice(entries_.begin(), entries_, place); }

  void Drop(Place place) {
    bytes_ -= place->bytes;
    entries_.erase(place);
  }

  // Drops items until all take no more than the limit. One that is larger than that alone is not kept.
  void Add(const std::string& owner, Item item, uint64_t bytes) {
    if (bytes > max_bytes_) return;
    entries_.push_front({owner, std::move(item), bytes});
    bytes_ += bytes;
    while (bytes_ > max_bytes_) {
      const std::string loser = LargestOwner();
      const auto last =
          std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& e) { return e.owner == loser; });
      Drop(std::prev(last.base()));
    }
  }

 private:
  std::string LargestOwner() const {
    std::map<std::string_view, uint64_t> bytes;
    for (const Entry& entry : entries_) bytes[entry.owner] += entry.bytes;
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    return std::string(std::max_element(bytes.begin(), bytes.end(), less)->first);
  }

  const uint64_t max_bytes_;
  Entries entries_;
  uint64_t bytes_ = 0;
};

}  // namespace outrider
