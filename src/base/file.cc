#include "base/file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace outrider {

bool File::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool File::Read(char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = read(descriptor_, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool File::Close() {
  return descriptor_ < 0 || close(std::exchange(descriptor_, -1)) == 0;
}

Status ReplaceFile(const std::string& path, const std::function<bool(File&)>& write) {
  const auto failed = [&] { return Internal(fmt::format("cannot write {}: {}", path, std::strerror(errno))); };
  // Beside the file, so that the rename stays within one file system; hidden, so that nobody takes it for the file.
  const std::filesystem::path target(path);
  std::string temporary = (target.parent_path() / fmt::format(".{}.XXXXXX", target.filename().string())).string();
  File file(mkstemp(temporary.data()));
  if (!file.is_open()) return failed();
  if (write(file) && fsync(file.descriptor()) == 0 && file.Close() && rename(temporary.c_str(), path.c_str()) == 0) {
    return {};
  }
  Status error = failed();
  unlink(temporary.c_str());
  return error;
}

Status KeepFile(const std::string& path, std::string_view bytes) {
  std::error_code error;  // a folder that cannot be made is one that cannot be written to
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return ReplaceFile(path, [bytes](File& file) { return file.Write(bytes); });
}

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace outrider
