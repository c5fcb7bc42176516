#include "api/response_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/protocol.h"
#include "base/utf8.h"

namespace outrider {
namespace {

constexpr size_t kMaxShownId = 80;

Status Unknown(const std::string& id, const char* field) {
  return {StatusCode::kNotFound,
          fmt::format("response '{}' is not remembered: it was never stored here, was forgotten for newer ones, or is "
                      "somebody else's; send the conversation in \"input\" instead",
                      OneLine(id, kMaxShownId)),
          field};
}

Status NoMemory() {
  return Unsupported("this server does not remember responses; start it with --response-memory MIB");
}

}  // namespace

ResponseMemory::Responses::Place ResponseMemory::Search(const std::string& owner, const std::string& id) {
  auto& entries = responses_.entries();
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.owner == owner && entry.item.response["id"] == id; });
}

void ResponseMemory::Keep(const std::string& owner, RememberedResponse remembered) {
  // What the texts of both take; their trees take a few times as much.
  uint64_t bytes = DumpJson(remembered.conversation).size() + DumpJson(remembered.response).size();
  for (const Attachment& file : remembered.attachments) bytes += file.bytes->size();
  const std::lock_guard lock(mutex_);
  responses_.Add(owner, std::move(remembered), bytes);
}

Result<RememberedResponse> ResponseMemory::Find(const std::string& owner, const std::string& id, const char* field) {
  const std::lock_guard lock(mutex_);
  const auto found = Search(owner, id);
  if (found == responses_.entries().end()) return Unknown(id, field);
  responses_.MarkUsed(found);
  return found->item;
}

Status ResponseMemory::Forget(const std::string& owner, const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = Search(owner, id);
  if (found == responses_.entries().end()) return Unknown(id, "");
  responses_.Drop(found);
  return {};
}

Result<Json> StoredResponse(const ApiContext& context, const std::string& owner, const std::string& id) {
  if (context.responses == nullptr) return NoMemory();
  auto found = context.responses->Find(owner, id, "");
  if (!found.ok()) return found.status();
  return std::move(found->response);
}

Result<Json> DeleteStoredResponse(const ApiContext& context, const std::string& owner, const std::string& id) {
  if (context.responses == nullptr) return NoMemory();
  if (Status status = context.responses->Forget(owner, id); !status.ok()) return status;
  return Json{{"id", id}, {"object", "response"}, {"deleted", true}};
}

}  // namespace outrider
