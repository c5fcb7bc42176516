// AdapterList: the adapters (LoRA) that were loaded with the model, and how strongly each is applied to requests that
// do not say so themselves. JSON is llama.cpp's.
//
// Thread-safe: the scales are changed and read by any thread. A request takes them when it is read.
#pragma once

#include <mutex>
#include <vector>

#include "base/adapter_set.h"
#include "base/json.h"
#include "base/status.h"
#include "engine/adapter_info.h"

namespace outrider {

class AdapterList {
 public:
  AdapterList() = default;
  // `scales`: one for each adapter.
  AdapterList(std::vector<AdapterInfo> adapters, std::vector<float> scales)
      : adapters_(std::move(adapters)), scales_(std::move(scales)) {}

  std::vector<uint64_t> Fingerprints() const;  // by id
  AdapterSet Defaults() const;

  // GET and POST /lora-adapters. Adapters that a body does not name get the scale 0.
  Json Describe() const;
  Result<Json> SetDefaults(const Json& body);

  // The field "lora" of a request; if it is null or empty, the defaults.
  Result<AdapterSet> Read(const Json& list) const;

 private:
  Result<std::vector<float>> ReadScales(const Json& list) const;

  const std::vector<AdapterInfo> adapters_;
  mutable std::mutex mutex_;
  std::vector<float> scales_;  // guarded by mutex_
};

}  // namespace outrider
