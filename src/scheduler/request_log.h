// The log lines about requests: one for each that is over.
#pragma once

#include "base/clock.h"
#include "scheduler/generation.h"

namespace outrider {

void LogFinished(const Completion& completion);

// It was given up before it began.
void LogNeverBegun(Duration waited);

}  // namespace outrider
