// Tls: the server's side of TLS 1.2 and 1.3, with a certificate and a key from files. Clients need no certificate; who
// they are is told by API keys.
//
// Immutable; thread-safe. The handshake is part of the first reads and writes of a connection.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "http/wire.h"

namespace outrider {

class Tls {
 public:
  // PEM files: the certificate, followed by those of its issuers if there are any, and its private key.
  static Result<std::shared_ptr<const Tls>> Create(const std::string& certificate_file, const std::string& key_file);
  virtual ~Tls() = default;

  // Takes over an accepted socket; null if there is no memory for it, and the socket is closed then.
  virtual std::unique_ptr<Wire> Accept(int socket) const = 0;
};

}  // namespace outrider
