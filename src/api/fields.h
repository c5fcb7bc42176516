// Reading request fields. Each reader leaves the default if the field is absent or null. Otherwise a wrong type or a
// value out of range is an error that names the field. So all protocols refuse the same mistakes with the same message.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace outrider {

// Collects the first error, so that a parse function reads as a list of fields and checks once at the end.
class FieldReader {
 public:
  explicit FieldReader(const Json& body,
                       std::string path = "");  // `path` is put before names in errors: "text." for text.format

  bool Has(const char* name) const;        // present and not null
  const Json& At(const char* name) const;  // the value; null if absent

  void Bool(const char* name, bool* out);
  void Int(const char* name, int64_t min, int64_t max, int* out);  // whole numbers, also written as 10.0
  void Seed(const char* name, uint64_t* out);                      // -1 or absent leaves *out
  void Float(const char* name, double min, double max, float* out);
  void String(const char* name, std::string* out);
  void StringOrList(const char* name, size_t max_items, std::vector<std::string>* out);  // "stop"
  void Object(const char* name, Json* out);
  void Array(const char* name, Json* out);

  void Fail(const char* name, const std::string& message);  // records an error about a field
  void Adopt(const Status& error);                          // records what a reader of a nested object found
  const Status& status() const { return status_; }

 private:
  const Json& body_;
  std::string path_;
  Status status_;
};

}  // namespace outrider
