// Certificates for a draft server and its clients (outrider cert): a small authority that both ends trust, and one
// certificate for each end.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

// Writes ca.crt, ca.key, server.crt, server.key, client.crt and client.key into `folder`, which is made if there is
// none. The server's certificate is for `hosts` (names and addresses) and for this machine itself. An authority that is
// there already is used, so that other machines need not be given a new one; other files that exist are not
// overwritten: kInvalidArgument.
Status MakeCertificates(const std::string& folder, const std::vector<std::string>& hosts);

}  // namespace outrider
