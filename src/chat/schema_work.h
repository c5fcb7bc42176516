// What it costs llama-common to make a grammar of a schema, found out by going the way that its converter goes.
//
// For an object with n optional properties it makes of the order of n³ copies. Properties that an "allOf" takes from
// references are converted again at each place, so that a few hundred bytes can mean work for hours, and the name of a
// rule is the path to it. Pure function.
#pragma once

#include <cstdint>

struct common_chat_schema_document;

namespace outrider {

// For all schemas of a request. About a tenth of a second; a single object may have 250 optional properties, and all
// objects together thousands of required ones.
inline constexpr uint64_t kMaxSchemaWork = 3'000'000;

// In units of about 50 ns. Stops counting at kMaxSchemaWork, and takes less time than the conversion then.
uint64_t SchemaWork(const common_chat_schema_document& document);

}  // namespace outrider
