#include "apps/sampling_flags.h"

namespace outrider {

void AddSamplingFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Sampling: what a request may override");
  SamplingOptions& s = o.sampling;
  flags.Add("-s,--seed", o.seed, "seed of requests that name none; -1 = a random one each");
  flags.SameAsDefault("4294967295");
  RequestFlags& r = o.requests;
  flags.Add("--samplers", r.samplers,
            "what is done with the logits, in this order, separated by semicolons; default: "
            "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
  flags.Add("--sampler-seq,--sampling-seq", r.sampler_letters, "the same as letters; default: edskypmxt");
  flags.Add("--temp,--temperature", s.temperature, "temperature; 0 = the most likely token")
      ->check(CLI::Range(0.0, 100.0));
  flags
      .Add("--dynatemp-range", s.dynatemp_range,
           "the temperature moves up and down by so much, with the model's uncertainty; 0 = off")
      ->check(CLI::Range(0.0, 100.0));
  flags.Add("--dynatemp-exp", s.dynatemp_exponent, "exponent of the dynamic temperature")
      ->check(CLI::Range(0.0, 100.0));
  flags.Add("--top-k", s.top_k, "keep the k most likely tokens; 0 = all")->check(CLI::Range(-1, 1 << 30));
  flags.Add("--top-p", s.top_p, "keep the most likely tokens that together reach p; 1 = all")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--min-p", s.min_p, "drop tokens below p times the most likely; 0 = none")->check(CLI::Range(0.0, 1.0));
  flags.Add("--typical,--typical-p", s.typical_p, "locally typical sampling; 1 = off")->check(CLI::Range(0.0, 1.0));
  flags.Add("--top-nsigma,--top-n-sigma", s.top_n_sigma,
            "keep logits within n standard deviations of the best; -1 = off");
  flags.Add("--xtc-probability", s.xtc_probability, "chance of excluding the top choices; 0 = off")
      ->check(CLI::Range(0.0, 1.0));
  flags.Add("--xtc-threshold", s.xtc_threshold, "what counts as a top choice for XTC")->check(CLI::Range(0.0, 1.0));
  flags.Add("--mirostat", s.mirostat, "1 or 2 = this version of Mirostat instead of all other samplers; 0 = off")
      ->check(CLI::Range(0, 2));
  flags.Add("--mirostat-ent", s.mirostat_tau, "Mirostat: target entropy, in bits")->check(CLI::Range(0.0, 100.0));
  flags.Add("--mirostat-lr", s.mirostat_eta, "Mirostat: how fast it learns")->check(CLI::Range(0.0, 1.0));
  flags.Add("--repeat-last-n", s.repeat_last_n, "tokens the penalties look back; 0 = off, -1 = all")
      ->check(CLI::Range(-1, 1 << 30));
  flags.Add("--repeat-penalty", s.repeat_penalty, "penalty for repeated tokens; 1 = off")->check(CLI::PositiveNumber);
  flags.Add("--presence-penalty", s.presence_penalty, "subtracted if a token occurred");
  flags.Add("--frequency-penalty", s.frequency_penalty, "subtracted for each time a token occurred");
  flags.Add("--dry-multiplier", s.dry_multiplier, "DRY repetition penalty; 0 = off")->check(CLI::NonNegativeNumber);
  flags.Add("--dry-base", s.dry_base, "DRY: growth of the penalty with the length of the repetition");
  flags.Add("--dry-allowed-length", s.dry_allowed_length, "DRY: repetitions up to this length are free");
  flags.Add("--dry-penalty-last-n", s.dry_penalty_last_n, "DRY: tokens looked back; 0 = off, -1 = all")
      ->check(CLI::Range(-1, 1 << 30));
  flags.Add("--dry-sequence-breaker", r.dry_breakers,
            "DRY: text that ends a repetition; may be repeated; replaces the usual ones; none = no such text");
  flags.Add("-l,--logit-bias", r.logit_bias,
            "TOKEN+BIAS or TOKEN-BIAS: added to the logit of a token; may be repeated");
  flags.Switch("--ignore-eos", r.ignore_eos, "answers do not end before they reach their limit");
  flags.Add("-r,--reverse-prompt", r.stop, "text that ends an answer and is not part of it; may be repeated");
  flags.OnOff("-e,--escape", "--no-escape", r.escapes,
              "read \\n, \\t and the like in --reverse-prompt and --dry-sequence-breaker");
  flags.Add("--grammar", r.grammar, "GBNF grammar that answers follow");
  flags.Add("--grammar-file", r.grammar_file, "the same from a file");
  flags.Add("-j,--json-schema", r.json_schema, "JSON schema that answers follow");
  flags.Add("-jf,--json-schema-file", r.json_schema_file, "the same from a file");
  flags.OnOff("--cache-prompt", "--no-cache-prompt", r.reuse_prefix,
              "what a slot has computed of the same prompt before is used again");
}

}  // namespace outrider
