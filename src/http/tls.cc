#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cerrno>

namespace outrider {
namespace {

// What OpenSSL says went wrong first.
std::string Reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* text = ERR_reason_error_string(code);
  return text == nullptr ? "unknown reason" : text;
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

class TlsWire : public Wire {
 public:
  TlsWire(int socket, std::unique_ptr<SSL, FreeSsl> ssl) : Wire(socket), ssl_(std::move(ssl)) {}

  ssize_t Read(char* to, size_t size) override {
    size_t count = 0;
    return SSL_read_ex(ssl_.get(), to, size, &count) == 1 ? static_cast<ssize_t>(count) : Explain();
  }

  ssize_t Write(std::string_view bytes) override {
    if (bytes.empty()) return 0;
    size_t count = 0;
    return SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &count) == 1 ? static_cast<ssize_t>(count) : Explain();
  }

  short awaited() const override { return awaited_; }
  bool HasMore() const override { return SSL_has_pending(ssl_.get()) == 1; }

  bool PeerIsThere() override {
    char byte = 0;
    size_t count = 0;
    return SSL_peek_ex(ssl_.get(), &byte, 1, &count) == 1 || (Explain() < 0 && errno == EAGAIN);
  }

  void EndWriting() override {
    if (!broken_ && SSL_is_init_finished(ssl_.get())) SSL_shutdown(ssl_.get());
    ERR_clear_error();
    Wire::EndWriting();
  }

 private:
  // The result of a call that did not succeed, with errno, as the system's own calls have it.
  ssize_t Explain() {
    const int error = SSL_get_error(ssl_.get(), 0);
    ERR_clear_error();
    if (error == SSL_ERROR_ZERO_RETURN) return 0;
    const bool later = error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
    awaited_ = error == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
    broken_ = broken_ || !later;
    errno = later ? EAGAIN : ECONNRESET;
    return -1;
  }

  const std::unique_ptr<SSL, FreeSsl> ssl_;
  short awaited_ = POLLIN;
  bool broken_ = false;  // OpenSSL must not be asked to say goodbye
};

class OpenSslTls : public Tls {
 public:
  OpenSslTls() : context_(SSL_CTX_new(TLS_server_method())) {}

  Status Load(const std::string& certificate_file, const std::string& key_file) {
    SSL_CTX* context = context_.get();
    if (context == nullptr) return Internal("TLS is not available: " + Reason());
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    // Writes go on from wherever the rest of the bytes is then, and idle connections hold no buffers.
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
      return InvalidArgument(
          fmt::format("--ssl-cert-file '{}' is not a certificate in PEM: {}", certificate_file, Reason()));
    }
    if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      return InvalidArgument(
          fmt::format("--ssl-key-file '{}' is not the private key of the certificate, in PEM: {}", key_file, Reason()));
    }
    return {};
  }

  std::unique_ptr<Wire> Accept(int socket) const override {
    std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context_.get()));
    if (!ssl || SSL_set_fd(ssl.get(), socket) != 1) {
      ERR_clear_error();
      close(socket);
      return nullptr;
    }
    SSL_set_accept_state(ssl.get());
    return std::make_unique<TlsWire>(socket, std::move(ssl));
  }

 private:
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  const std::unique_ptr<SSL_CTX, FreeContext> context_;
};

}  // namespace

Result<std::shared_ptr<const Tls>> Tls::Create(const std::string& certificate_file, const std::string& key_file) {
  auto tls = std::make_shared<OpenSslTls>();
  if (Status status = tls->Load(certificate_file, key_file); !status.ok()) return status;
  return std::shared_ptr<const Tls>(std::move(tls));
}

}  // namespace outrider
