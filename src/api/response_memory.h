// ResponseMemory: what earlier responses said, so that a request can go on from one by its id (previous_response_id of
// OpenAI's responses) and a client can ask for one again.
//
// Bounded, and gone when the server ends. A response belongs to the owner of its request; to others it does not exist.
// base/fair_cache.h says whose responses are forgotten when there is no room. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/fair_cache.h"
#include "base/json.h"
#include "base/status.h"
#include "chat/chat_template.h"

namespace outrider {

struct RememberedResponse {
  Json conversation;  // messages (ChatInput), without instructions: they hold for one response only
  Json response;      // as it was answered
  std::vector<Attachment> attachments = {};  // files of the conversation
};

class ResponseMemory {
 public:
  explicit ResponseMemory(uint64_t max_bytes) : responses_(max_bytes) {}

  void Keep(const std::string& owner, RememberedResponse remembered);

  // kNotFound names `field`, which holds the id.
  Result<RememberedResponse> Find(const std::string& owner, const std::string& id, const char* field);
  Status Forget(const std::string& owner, const std::string& id);

 private:
  using Responses = FairCache<RememberedResponse>;

  Responses::Place Search(const std::string& owner, const std::string& id);

  std::mutex mutex_;
  Responses responses_;  // guarded by mutex_
};

struct ApiContext;

// GET and DELETE /v1/responses/{id}. kUnsupported if responses are not remembered.
Result<Json> StoredResponse(const ApiContext& context, const std::string& owner, const std::string& id);
Result<Json> DeleteStoredResponse(const ApiContext& context, const std::string& owner, const std::string& id);

}  // namespace outrider
