// The log lines about requests: one for each request that has ended.
#pragma once

#include "base/clock.h"
#include "scheduler/generation.h"

namespace outrider {

void LogFinished(const Completion& completion);

// The request was given up before it began.
void LogNeverBegun(Duration waited);

}  // namespace outrider
