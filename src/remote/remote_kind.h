// The drafter 'remote' by name: --spec remote:host:8090,other:8090,cert=FOLDER
#pragma once

#include <memory>

#include "drafters/registry.h"
#include "remote/draft_network.h"

namespace outrider {

// `network` is set to the network of the drafter when one is made.
DrafterKind RemoteKind(std::shared_ptr<DraftNetwork>* network);

}  // namespace outrider
