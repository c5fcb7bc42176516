// DraftServerState: a draft server, as people who watch the server see it. Plain data, which the draft network fills in
// (remote/draft_network.h) and the dashboard shows (api/live.h).
#pragma once

#include <string>

namespace outrider {

struct DraftServerState {
  std::string address;
  bool usable = false;
  int streams = 0;            // of ours that are open
  double answer_seconds = 0;  // mean time from a question to the first tokens of its answer; 0 = not known
};

}  // namespace outrider
