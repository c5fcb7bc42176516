#include "bench/sse_reader.h"

namespace outrider {

bool SseReader::Feed(std::string_view bytes) {
  for (size_t end; (end = bytes.find('\n')) != bytes.npos; bytes.remove_prefix(end + 1)) {
    line_ += bytes.substr(0, end);
    if (line_.ends_with('\r')) line_.pop_back();
    TakeLine(line_);
    line_.clear();
  }
  line_ += bytes;
  return line_.size() + data_.size() <= kMaxBytes;
}

void SseReader::TakeLine(std::string_view line) {
  if (line.empty()) {
    if (has_data_) take_(data_);
    data_.clear();
    has_data_ = false;
    return;
  }
  constexpr std::string_view kField = "data:";
  if (!line.starts_with(kField)) return;
  line.remove_prefix(kField.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (has_data_) data_ += '\n';
  data_ += line;
  has_data_ = true;
}

}  // namespace outrider
