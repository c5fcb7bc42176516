#include "remote/certificates.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/free_with.h"

namespace outrider {
namespace {

constexpr long kDays = 3650;
constexpr long kDay = 24 * 60 * 60;

using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Memory = std::unique_ptr<BIO, FreeWith<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;

// A certificate and the key it is about.
struct Identity {
  Key key;
  Certificate certificate;
};

Status OpenSslError(const char* what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  return Internal(fmt::format("{}: {}", what, text.data()));
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool IsIpAddress(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Signed by `authority`, or by itself.
Result<Identity> Issue(const std::string& name, const Identity* authority,
                       const std::vector<std::pair<int, std::string>>& extensions) {
  Identity identity{Key(EVP_EC_gen("P-256")), Certificate(X509_new())};
  X509* certificate = identity.certificate.get();
  if (!identity.key || certificate == nullptr) return OpenSslError("no key");
  std::array<unsigned char, 16> serial{};
  if (RAND_bytes(serial.data(), serial.size()) != 1) return OpenSslError("no random numbers");
  serial[0] &= 0x7f;
  const std::unique_ptr<BIGNUM, FreeWith<BN_free>> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate));
  X509_set_version(certificate, 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(certificate), kDays * kDay);
  X509_set_pubkey(certificate, identity.key.get());
  X509_NAME* subject = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("Outrider"), -1, -1,
                             0);
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  X509* issuer = authority == nullptr ? certificate : authority->certificate.get();
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  for (const auto& [kind, value] : extensions) {
    if (!AddExtension(certificate, issuer, kind, value)) return OpenSslError(value.c_str());
  }
  EVP_PKEY* signer = authority == nullptr ? identity.key.get() : authority->key.get();
  if (X509_sign(certificate, signer, EVP_sha256()) == 0) return OpenSslError("cannot sign");
  return identity;
}

template <typename Writer>
std::string Pem(Writer write) {
  const Memory memory(BIO_new(BIO_s_mem()));
  write(memory.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::filesystem::path In(const std::string& folder, const char* end, const char* kind) {
  return std::filesystem::path(folder) / fmt::format("{}.{}", end, kind);
}

Status Write(const std::filesystem::path& path, const std::string& text, mode_t mode) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (file.is_open() && file.Write(text) && file.Close()) return {};
  return InvalidArgument(fmt::format("{} cannot be written: {}", path.string(), std::strerror(errno)));
}

Status Write(const std::string& folder, const char* end, const Identity& identity) {
  const std::string certificate = Pem([&](BIO* to) { PEM_write_bio_X509(to, identity.certificate.get()); });
  const std::string key =
      Pem([&](BIO* to) { PEM_write_bio_PrivateKey(to, identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
  if (Status status = Write(In(folder, end, "key"), key, S_IRUSR | S_IWUSR); !status.ok()) return status;
  return Write(In(folder, end, "crt"), certificate, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
}

// The authority in `folder`, if there is one.
Result<std::optional<Identity>> ReadAuthority(const std::string& folder) {
  const auto certificate = ReadFile(In(folder, "ca", "crt").string()), key = ReadFile(In(folder, "ca", "key").string());
  if (!certificate && !key) return std::optional<Identity>();
  Identity identity;
  if (certificate && key) {
    const Memory certificate_text(BIO_new_mem_buf(certificate->data(), static_cast<int>(certificate->size())));
    const Memory key_text(BIO_new_mem_buf(key->data(), static_cast<int>(key->size())));
    identity.certificate.reset(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
    identity.key.reset(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  }
  if (!identity.certificate || !identity.key ||
      X509_check_private_key(identity.certificate.get(), identity.key.get()) != 1) {
    return InvalidArgument(
        fmt::format("ca.crt and ca.key in {} do not belong together, or one is missing or damaged", folder));
  }
  return std::optional<Identity>(std::move(identity));
}

}  // namespace

Status MakeCertificates(const std::string& folder, const std::vector<std::string>& hosts) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return InvalidArgument(fmt::format("{} cannot be made: {}", folder, error.message()));
  for (const char* end : {"server", "client"}) {
    for (const char* kind : {"crt", "key"}) {
      if (!std::filesystem::exists(In(folder, end, kind))) continue;
      return InvalidArgument(
          fmt::format("{} exists; certificates are not overwritten", In(folder, end, kind).string()));
    }
  }
  std::string names = "DNS:localhost,IP:127.0.0.1,IP:::1";
  for (const std::string& host : hosts) {
    if (host.empty() || host.find_first_of(",:; \n") != std::string::npos) {
      if (!IsIpAddress(host)) return InvalidArgument(fmt::format("'{}' is not the name or address of a machine", host));
    }
    names += fmt::format(",{}:{}", IsIpAddress(host) ? "IP" : "DNS", host);
  }
  auto authority = ReadAuthority(folder);
  if (!authority.ok()) return authority.status();
  if (!*authority) {
    auto made = Issue("Outrider draft authority", nullptr,
                      {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                       {NID_key_usage, "critical,keyCertSign,cRLSign"},
                       {NID_subject_key_identifier, "hash"}});
    if (!made.ok()) return made.status();
    if (Status status = Write(folder, "ca", *made); !status.ok()) return status;
    *authority = std::move(*made);
  }
  auto server = Issue(
      "draft server", &**authority,
      {{NID_basic_constraints, "critical,CA:FALSE"}, {NID_ext_key_usage, "serverAuth"}, {NID_subject_alt_name, names}});
  if (!server.ok()) return server.status();
  auto client =
      Issue("client", &**authority, {{NID_basic_constraints, "critical,CA:FALSE"}, {NID_ext_key_usage, "clientAuth"}});
  if (!client.ok()) return client.status();
  if (Status status = Write(folder, "server", *server); !status.ok()) return status;
  return Write(folder, "client", *client);
}

}  // namespace outrider
