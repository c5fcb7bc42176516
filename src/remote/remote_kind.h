// The drafter 'remote' by name: --spec remote:host:8090,other:8090,cert=FOLDER
#pragma once

#include "drafters/registry.h"

namespace outrider {

DrafterKind RemoteKind();

}  // namespace outrider
