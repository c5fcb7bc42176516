#include "apps/bench_flags.h"

namespace outrider {

void AddBenchFlags(Flags& flags, BenchOptions& o) {
  flags.Group("What is measured");
  flags.Add("-m,--model", o.model, "GGUF file: starts one server with it that does not draft and one that does");
  flags.Add("-md,--model-draft", o.draft, "GGUF file of a draft model: starts one more server, with it");
  flags.Add("--spec", o.drafters, "drafters of the speculative server instead of auto; may be repeated, as for serve");
  flags.Add("--variant", o.variants, "one more Outrider: NAME=FLAGS of outrider serve; may be repeated");
  flags.Add("--against", o.against,
            "another server, started with the same model: NAME=PROGRAM [FLAGS] of a llama-server; may be repeated");
  flags.Add("--url", o.urls, "a server that runs already: [NAME=]http://host:port/v1; may be repeated");
  flags.Add("--api-key", o.api_key, "key for the servers of --url");
  flags.Add("-t,--threads", o.threads, "threads of the servers that are started; 0 = their default")
      ->check(CLI::Range(0, 4096));
  flags.Add("-ngl,--gpu-layers,--n-gpu-layers", o.gpu_layers, "their layers on the devices; -1 = their default")
      ->check(CLI::Range(-1, 1 << 20));
  flags.Add("--flags", o.flags, "more flags of outrider serve, for all Outriders that are started");

  flags.Group("How");
  flags.Add("--prompts", o.prompts,
            "file with lines {\"category\": …, \"turns\": [\"…\"]} instead of the 51 built-in prompts");
  flags.Add("--count", o.count, "how many of them, spread over the categories; 0 = all")->check(CLI::NonNegativeNumber);
  flags.Add("--runs", o.runs, "how often every question is asked")->check(CLI::Range(1, 1000));
  flags.Add("-n,--tokens", o.tokens, "maximum tokens of an answer")->check(CLI::Range(2, 1 << 20));
  flags.Add("--temp", o.temperatures, "temperatures, comma-separated")->delimiter(',')->check(CLI::Range(0.0, 10.0));
  flags.Add("--concurrency", o.concurrency, "requests at a time, comma-separated")
      ->delimiter(',')
      ->check(CLI::Range(1, 256));
  flags.Add("--context", o.contexts, "tokens of prose before each prompt, comma-separated: 0,2k,8k")->delimiter(',');
  flags.Add("--from", o.from, "results.jsonl of an earlier benchmark: only makes its report again");
  flags.Add("--record", o.record,
            "measures nothing, but records answers, what all drafters say at each position, and what steps cost: "
            "NAME.workload.jsonl and NAME.machine.json, for replays (docs/WORLDS.md)");
  flags.Add("--out", o.out, "folder for results.jsonl, report.html and logs; default: bench-DATE-TIME");
}

}  // namespace outrider
