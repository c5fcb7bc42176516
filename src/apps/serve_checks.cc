#include "apps/serve_checks.h"

#include <fmt/format.h>

#include <filesystem>

#include "apps/speculation.h"
#include "base/address.h"

namespace outrider {

Result<std::vector<ApiKey>> CollectApiKeys(const ServeOptions& options) {
  std::vector<ApiKey> keys;
  for (const bool admin : {false, true}) {
    for (const std::string& key : admin ? options.admin_keys : options.api_keys) {
      if (key.empty()) return InvalidArgument(fmt::format("{} is empty", admin ? "--admin-key" : "--api-key"));
      keys.push_back(PlainKey(key, admin));
    }
  }
  if (!options.api_key_file.empty()) {
    auto more = ReadKeyFile(options.api_key_file);
    if (!more.ok()) return more.status();
    keys.insert(keys.end(), more->begin(), more->end());
  }
  if (Status status = CheckDistinct(keys); !status.ok()) return status;
  if (keys.empty() && !IsLoopback(options.http.host) && !options.allow_no_keys) {
    return InvalidArgument(
        fmt::format("--host {} can be reached from other machines: give an --api-key, or --insecure-no-auth if "
                    "everybody may use this server",
                    options.http.host));
  }
  return keys;
}

Status CheckSlotDirectory(const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) return {};
  return InvalidArgument(fmt::format("--slot-save-path '{}' is not a directory", path));
}

Status CheckSpeculation(const ServeOptions& options) {
  auto drafters = ChooseDrafters(options.speculation);
  if (!drafters.ok()) return drafters.status();
  if (options.replica.empty()) return {};
  if (!options.http.slot_files.folder.empty()) return InvalidArgument("--slot-save-path does not work with --replica");
  if (!options.media.path.empty() || !options.download.media_url.empty()) {
    return InvalidArgument("--mmproj does not work with --replica");
  }
  if (Chosen(*drafters, "remote")) return {};
  return InvalidArgument("--replica needs a drafter that goes on while the target verifies: --spec remote:HOST:PORT");
}

}  // namespace outrider
