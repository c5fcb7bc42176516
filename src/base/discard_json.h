// Destroying large Json values where there may be no memory: ~Json makes a list of the parts first, and ends the
// program if it cannot. Depth is bounded by kMaxJsonDepth, so recursion is safe.
#pragma once

#include "base/json.h"

namespace outrider {

inline void DiscardJson(Json* value) {
  if (value->is_array()) {
    auto& items = value->get_ref<Json::array_t&>();
    for (; !items.empty(); items.pop_back()) DiscardJson(&items.back());
  } else if (value->is_object()) {
    auto& members = value->get_ref<Json::object_t&>();
    for (; !members.empty(); members.pop_back()) DiscardJson(&members.back().second);
  }
}

// Discards it at the end of the block.
class DiscardedJson {
 public:
  explicit DiscardedJson(Json* value) : value_(value) {}
  explicit DiscardedJson(Result<Json>* value) : value_(value->ok() ? &**value : nullptr) {}
  ~DiscardedJson() {
    if (value_ != nullptr) DiscardJson(value_);
  }
  DiscardedJson(const DiscardedJson&) = delete;
  DiscardedJson& operator=(const DiscardedJson&) = delete;

 private:
  Json* const value_;
};

}  // namespace outrider
