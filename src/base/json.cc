#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "base/discard_json.h"
#include "base/utf8.h"

namespace outrider {
namespace {

constexpr size_t kAskEvery = 1 << 14;  // values: takes about a millisecond

// Builds a value from what nlohmann's parser reads, within the limits. nlohmann's own builder would look for each key
// among the members before it, which takes the square of their number.
class Builder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  Builder(const JsonLimits& limits, const std::function<bool()>& wanted) : limits_(limits), wanted_(wanted) {}

  ~Builder() { DiscardJson(&root_); }  // it may be half built, for want of memory
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Json& root() { return root_; }
  const Status& status() const { return status_; }

  bool null() { return Add(nullptr); }
  bool boolean(bool value) { return Add(value); }
  bool number_integer(number_integer_t value) { return Add(value); }
  bool number_unsigned(number_unsigned_t value) { return Add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) { return Add(value); }
  bool string(string_t& value) { return Add(std::move(value)); }
  bool binary(binary_t& /*value*/) { return Fail("the request body is not valid JSON"); }

  bool start_array(size_t /*size*/) { return Add(Json::array(), /*opens=*/true); }
  bool start_object(size_t /*size*/) { return Add(Json::object(), /*opens=*/true); }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool end_object() {
    KeepLastOfEqualKeys(*open_.back());
    open_.pop_back();
    return true;
  }

  bool key(string_t& name) {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    if (members.size() >= limits_.members) {
      return Fail(
          fmt::format("an object in the request body has more than {} members (--max-members)", limits_.members));
    }
    MakeRoom(&members);
    // Past ordered_map's own functions, which look for the key.
    members.Container::emplace_back(std::move(name), nullptr);
    return Spend(kValuesPerMember);
  }

  bool parse_error(size_t /*position*/, const std::string& /*token*/, const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." → the part a reader needs.
    const std::string_view what = error.what();
    const size_t from = what.find("parse error");
    return Fail(fmt::format("the request body is not valid JSON: {}", what.substr(from == what.npos ? 0 : from)));
  }

 private:
  template <typename Value>
  bool Add(Value&& value, bool opens = false) {
    if (!Spend(1)) return false;
    if (opens && open_.size() == kMaxJsonDepth) {
      return Fail(fmt::format("the request body is nested deeper than {} levels", kMaxJsonDepth));
    }
    Json* place = &root_;
    if (!open_.empty() && open_.back()->is_object()) {
      place = &open_.back()->get_ref<Json::object_t&>().back().second;
    } else if (!open_.empty()) {
      auto& items = open_.back()->get_ref<Json::array_t&>();
      items.emplace_back();
      place = &items.back();
    }
    *place = Json(std::forward<Value>(value));
    if (opens) open_.push_back(place);
    return true;
  }

  // A list of members that grows copies them with all that is below them, because their names are constant and cannot
  // be moved. At each level of nesting that would be the whole text so far.
  static void MakeRoom(Json::object_t* members) {
    constexpr size_t kFirst = 4;
    if (members->size() < members->capacity()) return;
    Json::object_t roomy;
    roomy.reserve(std::max(kFirst, 2 * members->size()));
    for (auto& [name, value] : *members) roomy.Container::emplace_back(name, std::move(value));
    *members = std::move(roomy);
  }

  bool Spend(size_t values) {
    spent_ += values;
    if (spent_ > limits_.values) {
      return Fail(fmt::format(
          "the request body has more than {} values, the members of objects counted {} times (--max-values)",
          limits_.values, kValuesPerMember));
    }
    if (!wanted_ || spent_ / kAskEvery == asked_) return true;
    asked_ = spent_ / kAskEvery;
    if (wanted_()) return true;
    status_ = Unavailable("nobody waits for this request any more");
    return false;
  }

  // As nlohmann's builder does: the first one's place, the last one's value.
  void KeepLastOfEqualKeys(Json& object) {
    // As a list: by number, not by key.
    Json::object_t::Container& members = object.get_ref<Json::object_t&>();
    order_.resize(members.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      const int difference = members[a].first.compare(members[b].first);
      return difference != 0 ? difference < 0 : a < b;
    });
    std::vector<bool> repeated;
    size_t first = 0;
    for (size_t i = 1; i < order_.size(); ++i) {
      if (members[order_[i]].first != members[order_[first]].first) {
        first = i;
        continue;
      }
      repeated.resize(members.size());
      repeated[order_[i]] = true;
      members[order_[first]].second = std::move(members[order_[i]].second);
    }
    if (repeated.empty()) return;
    Json::object_t kept;
    kept.reserve(members.size());
    for (size_t i = 0; i < members.size(); ++i) {
      if (!repeated[i]) kept.Container::emplace_back(members[i].first, std::move(members[i].second));
    }
    object = std::move(kept);
  }

  bool Fail(std::string message) {
    status_ = InvalidArgument(std::move(message));
    return false;
  }

  const JsonLimits limits_;
  const std::function<bool()>& wanted_;
  Json root_;
  std::vector<Json*> open_;    // lists and objects that are not complete, the outermost first
  std::vector<size_t> order_;  // scratch of KeepLastOfEqualKeys
  size_t spent_ = 0;
  size_t asked_ = 0;
  Status status_;
};

}  // namespace

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits, const std::function<bool()>& wanted) {
  if (text.empty()) return InvalidArgument("the request body is empty; send a JSON object");
  if (!IsValidUtf8(text)) return InvalidArgument("the request body is not valid UTF-8");
  Builder builder(limits, wanted);
  if (!Json::sax_parse(text, &builder)) return builder.status();
  return std::move(builder.root());
}

std::string DumpJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace outrider
