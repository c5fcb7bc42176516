// Everything `outrider bench` can be told; bench_flags.cc gives each field its flag and its line of help.
#pragma once

#include <string>
#include <vector>

namespace outrider {

struct BenchOptions {
  // Servers that the benchmark starts.
  std::string model, draft;
  std::vector<std::string> drafters;  // --spec of the variant that has them
  std::string flags;                  // for all Outriders that are started
  std::vector<std::string> variants;  // NAME=FLAGS
  std::vector<std::string> against;   // NAME=PROGRAM [FLAGS], a llama-server
  int threads = 0, gpu_layers = -1;

  // Servers that run already: [NAME=]http://host:port.
  std::vector<std::string> urls;
  std::string api_key;

  std::string prompts;  // file; "" = those that are built in
  int count = 0;        // prompts to use, spread over the categories; 0 = all
  int runs = 1;
  int tokens = 128;  // limit for an answer
  std::vector<int> concurrency = {1};
  std::vector<double> temperatures = {0};
  std::vector<std::string> contexts = {"0"};  // tokens, also "2k"
  std::string from;                           // results of an earlier benchmark: only its report is made again
  std::string record;                         // files to record a world in; "" = measure
  std::string out;                            // folder; "" = bench-DATE-TIME
};

}  // namespace outrider
