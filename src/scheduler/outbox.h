// Outbox: what the consumers of requests get at the end of the step. When a consumer learns that its request has ended,
// its slot is free and the counters are right.
//
// Belongs to the stepping thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "scheduler/generation.h"

namespace outrider {

class Outbox {
 public:
  void Add(std::shared_ptr<Generation> generation, Chunk chunk) {
    chunks_.emplace_back(std::move(generation), std::move(chunk));
  }

  void Deliver() {
    for (auto& [generation, chunk] : chunks_) generation->Push(std::move(chunk));
    chunks_.clear();
  }

 private:
  std::vector<std::pair<std::shared_ptr<Generation>, Chunk>> chunks_;
};

}  // namespace outrider
