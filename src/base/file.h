// Files: complete reads and writes by descriptor, and atomic replacement of a file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace outrider {

// Owns a descriptor, which may be -1 (see errno).
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() { Close(); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }

  // All of it, or false; errno says why, except at the end of the file.
  bool Write(std::string_view bytes);
  bool Read(char* to, size_t bytes);

  // Closing may be what reports that the disk is full.
  bool Close();

 private:
  int descriptor_;
};

// Replaces the file `path` by what `write` writes, atomically: a reader finds the complete old file or the complete new
// one, even after a crash. `write` returns false if it could not write (see errno). Fails with kInternal and the
// reason.
Status ReplaceFile(const std::string& path, const std::function<bool(File&)>& write);

// The same with `bytes`; creates missing folders.
Status KeepFile(const std::string& path, std::string_view bytes);

// All of a file; nothing if it cannot be opened.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace outrider
