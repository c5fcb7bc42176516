// Files: whole reads and writes by descriptor, and a file replaced at once or not at all.
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

// Puts what `write` writes in the place of `path`, all of it or nothing: a reader finds the old file or the new one,
// whatever happens meanwhile. `write` returns false if it could not write (errno). kInternal with the reason.
Status ReplaceFile(const std::string& path, const std::function<bool(File&)>& write);

// The same with `bytes`, in folders that are made where they are missing.
Status KeepFile(const std::string& path, std::string_view bytes);

// All of a file; nothing if it cannot be opened.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace outrider
