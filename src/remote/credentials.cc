#include "remote/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/address.h"
#include "base/file.h"

namespace outrider {
namespace {

Result<std::string> ReadPem(const std::string& folder, const std::string& name) {
  const std::string path = (std::filesystem::path(folder) / name).string();
  auto text = ReadFile(path);
  if (text) return std::move(*text);
  return InvalidArgument(fmt::format("{} cannot be read; outrider cert makes certificates", path));
}

Status PlainTextRefused(const std::string& address) {
  return InvalidArgument(
      fmt::format("{} is not on this machine, and drafting shows the other one all prompts and answers: give both ends "
                  "certificates (outrider cert), or allow plain text with --insecure",
                  address));
}

// It travels as a header, which has no other characters.
Status CheckToken(const std::string& token) {
  const bool fit = std::all_of(token.begin(), token.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return fit ? Status() : InvalidArgument("the token of a draft server may have printable ASCII characters only");
}

// Without certificates: only within this machine, or where that is allowed.
Status MayBePlain(const std::string& address, bool insecure) {
  auto parsed = ParseAddress(address);
  if (!parsed.ok()) return parsed.status();
  return insecure || IsLoopback(parsed->host) ? Status() : PlainTextRefused(address);
}

}  // namespace

Result<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(const ClientCredentials& options,
                                                                         const std::string& address) {
  if (Status status = CheckToken(options.token); !status.ok()) return status;
  if (options.folder.empty()) {
    if (Status status = MayBePlain(address, options.insecure); !status.ok()) return status;
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions ssl;
  auto root = ReadPem(options.folder, "ca.crt");
  if (!root.ok()) return root.status();
  ssl.pem_root_certs = std::move(*root);
  if (std::filesystem::exists(std::filesystem::path(options.folder) / "client.key") || options.token.empty()) {
    auto certificate = ReadPem(options.folder, "client.crt");
    if (!certificate.ok()) return certificate.status();
    auto key = ReadPem(options.folder, "client.key");
    if (!key.ok()) return key.status();
    ssl.pem_cert_chain = std::move(*certificate);
    ssl.pem_private_key = std::move(*key);
  }
  return grpc::SslCredentials(ssl);
}

Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const ServerCredentials& options,
                                                                       const std::string& address) {
  if (Status status = CheckToken(options.token); !status.ok()) return status;
  if (options.folder.empty()) {
    if (Status status = MayBePlain(address, options.insecure); !status.ok()) return status;
    return grpc::InsecureServerCredentials();
  }
  auto root = ReadPem(options.folder, "ca.crt");
  if (!root.ok()) return root.status();
  auto certificate = ReadPem(options.folder, "server.crt");
  if (!certificate.ok()) return certificate.status();
  auto key = ReadPem(options.folder, "server.key");
  if (!key.ok()) return key.status();
  grpc::SslServerCredentialsOptions ssl(options.token.empty()
                                            ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                            : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_root_certs = std::move(*root);
  ssl.pem_key_cert_pairs.push_back({std::move(*key), std::move(*certificate)});
  return grpc::SslServerCredentials(ssl);
}

}  // namespace outrider
