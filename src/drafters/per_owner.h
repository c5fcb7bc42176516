// PerOwner: one memory for each owner (API key) of what a drafter remembers from earlier requests, so that the texts of
// one owner are never proposed to another. When there are too many owners, the least recently used one is forgotten;
// requests that still use its memory keep it until they end.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace outrider {

template <typename Memory>
class PerOwner {
 public:
  PerOwner(int max_owners, std::function<std::shared_ptr<Memory>()> make)
      : max_owners_(static_cast<size_t>(max_owners)), make_(std::move(make)) {}

  std::shared_ptr<Memory> Get(const std::string& owner) {
    auto found = std::find_if(owners_.begin(), owners_.end(), [&](const auto& entry) { return entry.first == owner; });
    if (found == owners_.end()) {
      if (owners_.size() >= max_owners_) owners_.pop_back();
      found = owners_.insert(owners_.end(), {owner, make_()});
    }
    std::rotate(owners_.begin(), found, found + 1);
    return owners_.front().second;
  }

  size_t size() const { return owners_.size(); }

 private:
  size_t max_owners_;
  std::function<std::shared_ptr<Memory>()> make_;
  std::vector<std::pair<std::string, std::shared_ptr<Memory>>> owners_;  // the latest first
};

}  // namespace outrider
