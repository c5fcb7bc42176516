// Models that are fetched before they are loaded: from Hugging Face (or a server that speaks its API: the variables
// HF_ENDPOINT and MODEL_ENDPOINT), or from the address of a file.
//
// With llama-common's downloader, into the cache that llama.cpp and Hugging Face's own programs use, so that nothing is
// fetched twice. A download that was interrupted goes on where it ended. Files of a repository are compared with the
// SHA-256 that the hub names; one that differs is removed. Progress is shown on a terminal, else in the log.
// One download at a time; blocks until it is done.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

struct ModelSource {
  std::string repo;      // "user/model" or "user/model:Q4_K_M"; "" = by url
  std::string file;      // of the repository; "" = the one of the quantisation
  std::string url;       // of a file
  std::string path;      // where the file of the url is kept; "" = in the cache
  std::string token;     // for a repository that is not public
  bool offline = false;  // only what is in the cache
};

// The path of the model; of a split model, of its first part, with the others beside it.
Result<std::string> DownloadModel(const ModelSource& source);

// "user/model:Q4_K_M" of each model of the cache.
std::vector<std::string> CachedModels();

}  // namespace outrider
