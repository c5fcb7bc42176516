// POST /slots/{id}?action=save|restore|erase, as llama.cpp has it.
#pragma once

#include <string>

#include "base/json.h"
#include "base/status.h"
#include "scheduler/scheduler.h"

namespace outrider {

// `body` names the file for save and restore; `directory` is where such files lie, "" if the user gave none.
Result<Json> SlotAction(const std::string& id, const std::string& action, const std::string& body,
                        const std::string& directory, uint64_t model_fingerprint, Scheduler& scheduler);

}  // namespace outrider
