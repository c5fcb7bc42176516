// What a consumer is told while the prompt is read, if its request asks for that (GenerationRequest::report_progress).
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "scheduler/outbox.h"
#include "scheduler/sequence.h"

namespace outrider {

// Nothing if the request did not ask for it.
void ReportProgress(const Sequence& sequence, const Engine& engine, TimePoint now, Outbox* outbox);

}  // namespace outrider
