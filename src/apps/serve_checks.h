// What `outrider serve` can refuse by looking at its options, before anything is loaded. kInvalidArgument says which
// flag is wrong.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/serve_options.h"
#include "base/status.h"
#include "http/auth.h"
#include "http/tls.h"

namespace outrider {

// The keys of --api-key, --admin-key and --api-key-file. Without any, only a loopback address may be listened on,
// unless
// --insecure-no-auth allows it.
Result<std::vector<ApiKey>> CollectApiKeys(const ServeOptions& options);

// --ssl-key-file and --ssl-cert-file; null without them.
Result<std::shared_ptr<const Tls>> LoadTls(const ServeOptions& options);

// --api-prefix; "" is fine, too.
Status CheckPathPrefix(const std::string& prefix);

// --chat-template, which must be Jinja, or chatml.
Status CheckChatTemplate(const std::string& source);

// --slot-save-path; "" is fine, too.
Status CheckSlotDirectory(const std::string& path);

// --spec and --replica.
Status CheckSpeculation(const ServeOptions& options);

}  // namespace outrider
