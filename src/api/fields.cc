#include "api/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/request_budget.h"

namespace outrider {
namespace {

constexpr double kLargestExactDouble = 9007199254740992.0;  // 2^53: whole numbers up to here are what the client wrote

std::optional<int64_t> WholeNumber(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) == number && std::abs(number) <= kLargestExactDouble) return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

}  // namespace

FieldReader::FieldReader(const Json& body, std::string path) : body_(body), path_(std::move(path)) {
  if (body_.is_object()) return;
  const bool top = path_.empty();
  status_ = InvalidArgument(top ? "the request body must be a JSON object" : "must be an object",
                            top ? "" : path_.substr(0, path_.size() - 1));
}

bool FieldReader::Has(const char* name) const {
  return !At(name).is_null();
}

const Json& FieldReader::At(const char* name) const {
  static const Json kNull;
  if (!body_.is_object()) return kNull;
  const auto found = body_.find(name);
  return found == body_.end() ? kNull : *found;
}

void FieldReader::Bool(const char* name, bool* out) {
  if (!Has(name)) return;
  if (!At(name).is_boolean()) return Fail(name, "must be true or false");
  *out = At(name).get<bool>();
}

void FieldReader::Int(const char* name, int64_t min, int64_t max, int* out) {
  if (!Has(name)) return;
  const std::optional<int64_t> number = WholeNumber(At(name));
  if (!number || *number < min || *number > max) {
    return Fail(name, fmt::format("must be a whole number between {} and {}", min, max));
  }
  *out = static_cast<int>(*number);
}

void FieldReader::Seed(const char* name, uint64_t* out) {
  if (!Has(name)) return;
  const Json& value = At(name);
  if (value.is_number_unsigned()) {
    *out = value.get<uint64_t>();
    return;
  }
  const std::optional<int64_t> number = WholeNumber(value);
  if (!number) return Fail(name, "must be a whole number");
  if (*number != -1) *out = static_cast<uint64_t>(*number);
}

void FieldReader::Float(const char* name, double min, double max, float* out) {
  if (!Has(name)) return;
  const Json& value = At(name);
  if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max)) {
    return Fail(name, fmt::format("must be a number between {} and {}", min, max));
  }
  *out = value.get<float>();
}

void FieldReader::String(const char* name, std::string* out) {
  if (!Has(name)) return;
  if (!At(name).is_string()) return Fail(name, "must be a string");
  *out = At(name).get<std::string>();
}

void FieldReader::StringOrList(const char* name, size_t max_items, std::vector<std::string>* out) {
  if (!Has(name)) return;
  const Json& value = At(name);
  const std::string wanted =
      fmt::format("must be a string or a list of at most {} strings, none empty or longer than {} bytes", max_items,
                  kMaxListedBytes);
  const bool fits = value.is_string() || (value.is_array() && value.size() <= max_items);
  if (!fits) return Fail(name, wanted);
  std::vector<std::string> strings;
  for (const Json& item : value.is_string() ? Json::array({value}) : value) {
    if (!item.is_string()) return Fail(name, wanted);
    const auto& text = item.get_ref<const std::string&>();
    if (text.empty() || text.size() > kMaxListedBytes) return Fail(name, wanted);
    strings.push_back(text);
  }
  *out = std::move(strings);
}

void FieldReader::Object(const char* name, Json* out) {
  if (!Has(name)) return;
  if (!At(name).is_object()) return Fail(name, "must be an object");
  *out = At(name);
}

void FieldReader::Array(const char* name, Json* out) {
  if (!Has(name)) return;
  if (!At(name).is_array()) return Fail(name, "must be a list");
  *out = At(name);
}

void FieldReader::Adopt(const Status& error) {
  if (status_.ok()) status_ = error;
}

void FieldReader::Fail(const char* name, const std::string& message) {
  if (status_.ok()) status_ = InvalidArgument(message, path_ + name);
}

}  // namespace outrider
