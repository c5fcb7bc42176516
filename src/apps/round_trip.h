// How far away another machine is.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider {

// The round trip to "host:port", where something must listen: the shortest time of several to open a connection, which
// takes one round trip. kUnavailable if nothing listens there.
Result<double> MeasureRoundTripSeconds(const std::string& address);

}  // namespace outrider
