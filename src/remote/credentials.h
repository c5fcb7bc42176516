// How the two ends authenticate each other: with certificates (made by outrider cert), or with a shared token (sent
// over TLS), or not at all on the loopback interface.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "base/status.h"

namespace outrider {

struct ClientCredentials {
  std::string folder;     // with ca.crt, client.crt and client.key, as outrider cert makes it; "" = no certificates
  std::string token;      // sent with every stream; "" = none
  bool insecure = false;  // plain text to any address
};

struct ServerCredentials {
  std::string folder;  // with ca.crt, server.crt and server.key
  std::string token;   // that clients must send instead of a certificate
  bool insecure = false;
};

// kInvalidArgument says which file is missing or why plain text is refused.
Result<std::shared_ptr<grpc::ChannelCredentials>> MakeChannelCredentials(const ClientCredentials& options,
                                                                         const std::string& address);
Result<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(const ServerCredentials& options,
                                                                       const std::string& address);

}  // namespace outrider
