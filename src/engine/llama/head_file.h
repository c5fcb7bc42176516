// What files say about heads (engine/hidden_head.h), read with ggml's parser before libllama loads them. libllama
// aborts the process where a head does not fit its target, so all that it takes for granted is checked here first.
#pragma once

#include <string>

#include "base/status.h"

namespace outrider {

// The value of general.architecture; "" if the file cannot be read or does not say it.
std::string FileArchitecture(const std::string& path);

// Whether the file can be used as a model by itself: kInvalidArgument if it is a head, kUnsupported if it is a draft of
// a kind that we do not run.
Status CheckIsNoHead(const std::string& path);

// What a head must fit.
struct HeadTarget {
  int layers = 0;
  int embedding_size = 0;
  int vocabulary_size = 0;
};

// Whether the EAGLE-3 head in `path` fits the target. kInvalidArgument says in one sentence what does not. OK does not
// mean that libllama can load it.
Status CheckEagle3File(const std::string& path, const HeadTarget& target);

// Whether a model's file, or one of its parts, has a head for multi-token prediction that we can use.
bool FileHasMtpHead(const std::string& path);

}  // namespace outrider
