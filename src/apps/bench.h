// `outrider bench`: how fast variants of a server answer, compared fairly, with the text checked on the way.
#pragma once

#include <string>
#include <vector>

#include "apps/flags.h"
#include "base/status.h"

namespace outrider {

struct BenchOptions {
  // Servers that are started for it.
  std::string model, draft;
  std::vector<std::string> drafters;  // --spec of the variant that has them
  std::string flags;                  // for all Outriders that are started
  std::vector<std::string> variants;  // NAME=FLAGS
  std::vector<std::string> against;   // llama-server=PROGRAM [FLAGS]
  int threads = 0, gpu_layers = -1;

  // Servers that run already: [NAME=]http://host:port.
  std::vector<std::string> urls;
  std::string api_key;

  std::string prompts;  // file; "" = those the program brings along
  int count = 0;        // prompts to use, spread over the categories; 0 = all
  int runs = 1;
  int tokens = 128;
  std::vector<int> concurrency = {1};
  std::vector<double> temperatures = {0};
  std::vector<std::string> contexts = {"0"};  // tokens, also "2k"
  std::string from;                           // results of an earlier bench, instead of all that
  std::string out;                            // folder; "" = bench-DATE-TIME
};

void AddBenchFlags(Flags& flags, BenchOptions& options);

// Prints the summary. *complete: every request was answered. An error is what kept it from measuring anything, or all
// of it; what was measured by then is in the folder.
Status Bench(const BenchOptions& options, bool* complete);

}  // namespace outrider
