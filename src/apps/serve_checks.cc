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

Result<std::shared_ptr<const Tls>> LoadTls(const ServeOptions& options) {
  const std::string &key = options.tls_key_file, &certificate = options.tls_certificate_file;
  if (key.empty() && certificate.empty()) return std::shared_ptr<const Tls>();
  if (key.empty()) return InvalidArgument("--ssl-cert-file needs --ssl-key-file");
  if (certificate.empty()) return InvalidArgument("--ssl-key-file needs --ssl-cert-file");
  return Tls::Create(certificate, key);
}

Status CheckPathPrefix(const std::string& prefix) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./~";
  const bool plain = prefix.find_first_not_of(kPlain) == prefix.npos;
  if (prefix.empty() || (prefix.starts_with('/') && !prefix.ends_with('/') && plain)) return {};
  return InvalidArgument(
      fmt::format("--api-prefix '{}' must begin with a slash, not end with one, and have letters, "
                  "digits, '-', '_', '.' and '~' only",
                  prefix));
}

// Parsed as Jinja, a template's name would be a constant prompt, so it is refused.
Status CheckChatTemplate(const std::string& source) {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
  if (source == "chatml" || source.find_first_not_of(kOfNames) != source.npos || source.empty()) return {};
  return InvalidArgument(
      fmt::format("--chat-template '{}' is the name of a template of llama.cpp without Jinja, or of a file; leave it "
                  "out for the model's own template, or give a file with --chat-template-file",
                  source));
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
