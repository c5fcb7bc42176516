// PerOwner: what drafters remember over requests, one for each owner, so that nothing told by one API key is ever
// proposed to another. The owner that was away longest is forgotten when there are too many; requests that still use
// its memory keep it until they end.
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
  PerOwner(int most, std::function<std::shared_ptr<Memory>()> make)
      : most_(static_cast<size_t>(most)), make_(std::move(make)) {}

  std::shared_ptr<Memory> Get(const std::string& owner) {
    auto found = std::find_if(owners_.begin(), owners_.end(), [&](const auto& entry) { return entry.first == owner; });
    if (found == owners_.end()) {
      if (owners_.size() >= most_) owners_.pop_back();
      found = owners_.insert(owners_.end(), {owner, make_()});
    }
    std::rotate(owners_.begin(), found, found + 1);
    return owners_.front().second;
  }

  size_t size() const { return owners_.size(); }

 private:
  size_t most_;
  std::function<std::shared_ptr<Memory>()> make_;
  std::vector<std::pair<std::string, std::shared_ptr<Memory>>> owners_;  // the latest first
};

}  // namespace outrider
