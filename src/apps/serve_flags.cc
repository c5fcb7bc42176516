#include "apps/serve_flags.h"

#include "apps/model_flags.h"
#include "apps/sampling_flags.h"

namespace outrider {
namespace {

void AddSchedulerFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Requests");
  flags.Add("--queue", o.scheduler.max_queue, "requests that may wait for a slot; one more gets 429")
      ->check(CLI::Range(0, 1000000));
  flags
      .Add("--prompt-slice", o.prompt_slice,
           "prompt tokens decoded per step while others are generating; 0 = 128, or 512 on a device")
      ->check(CLI::Range(0, 1 << 20));
  flags
      .Add("-cram,--cache-ram", o.cache_mib,
           "MiB of main memory for prompts whose slot another request took, so that they are not computed again; -1 = "
           "no limit, 0 = none; default: 8192, but at most an eighth of the memory, and none with --rpc")
      ->check(CLI::Range(-1, 1 << 30))
      ->default_str("");
  flags.Add("--request-seconds", o.request_seconds, "maximum time of a request, waiting included; 0 = no limit")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--drain-seconds", o.drain_seconds, "how long running requests may go on after SIGTERM")
      ->check(CLI::NonNegativeNumber);
  flags
      .Add("-n,--predict,--n-predict", o.max_tokens,
           "tokens of an answer where the request does not say; -1 = as the context allows")
      ->check(CLI::Range(-2, 1 << 30));
}

void AddHttpFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Server");
  flags.Add("--host", o.http.host, "address to listen on");
  flags.Add("--port", o.http.port, "port to listen on; 0 = any free one")->check(CLI::Range(0, 65535));
  flags.Add("--api-prefix", o.http.path_prefix, "what all paths begin with, such as /llm");
  flags.Add("--api-key", o.api_keys, "key that clients must send; may be repeated")->delimiter(',');
  flags
      .Add("--admin-key", o.admin_keys,
           "key for clients that may also save, restore and erase slots, and set the default scales of adapters")
      ->delimiter(',');
  flags.Add("--api-key-file", o.api_key_file,
            "file with one key per line, plain or as sha256:HEX with a name and limits (docs/SECURITY.md)");
  flags.Add("--ssl-key-file", o.tls_key_file, "private key in PEM; with --ssl-cert-file the server speaks https");
  flags.Add("--ssl-cert-file", o.tls_certificate_file, "its certificate in PEM, followed by those of its issuers");
  flags.Switch("--insecure-no-auth", o.allow_no_keys, "listen beyond this machine without any key");
  flags
      .Add("--allowed-host", o.http.allowed_hosts,
           "name by which clients call this server, beside localhost, this machine's name and IP addresses; requests "
           "to other names get 403; "
           "* = any")
      ->delimiter(',');
  flags
      .Add("--cors-origin,--cors-origins", o.http.cors_origins,
           "origin of web pages that may call the server, such as https://example.org; those of others get 403; "
           "localhost = "
           "pages of this machine, * = any")
      ->delimiter(',');
  flags.Add("--max-body", o.max_body_mib, "maximum size of a request in MiB")->check(CLI::Range(0.001, 1024.0));
  flags
      .Add("--max-values", o.http.json.values,
           "maximum number of JSON values in a request; the members of objects count 16 times")
      ->check(CLI::Range(1000, 1 << 30));
  flags.Add("--max-members", o.http.json.members, "maximum number of members of one JSON object in a request")
      ->check(CLI::Range(100, 1 << 20));
  flags
      .Add("--max-buffered", o.max_buffered_mib,
           "MiB of all requests that are being received or answered; beyond that the slowest is dropped")
      ->check(CLI::Range(0.001, 1048576.0));
  flags.Add("--http-head-seconds", o.http.head_seconds, "seconds in which a request's head must have come")
      ->check(CLI::Range(0.01, 86400.0));
  flags.Add("--http-body-seconds", o.http.body_seconds, "seconds in which a request's body must have come")
      ->check(CLI::Range(0.01, 86400.0));
  flags
      .Add("-to,--http-timeout,--timeout", o.http.timeout_seconds,
           "seconds without a byte after which a peer is dropped")
      ->check(CLI::Range(1, 86400));
  flags.Add("--http-idle", o.http.idle_seconds, "seconds a connection may stay open without a request")
      ->check(CLI::Range(1, 86400));
  flags
      .Add("--max-connections,--threads-http", o.http.max_connections,
           "connections at once; beyond that the slowest sender is dropped for a new one")
      ->check(CLI::Range(1, 65536));
  flags.SameAsDefault("-1");
  flags
      .Add("--max-connections-per-peer", o.http.max_connections_per_peer,
           "connections at once from one IPv4 address or IPv6 /64")
      ->check(CLI::Range(1, 65536));
  flags.Switch("--show-paths", o.show_paths,
               "show whole paths of files in /props and in the log, not only their names");
  flags.Switch("--no-webui,--no-ui", o.http.page, "do not serve the page for people at /", false);
  flags
      .Add(
          "--response-memory", o.response_memory_mib,
          "MiB for answers of /v1/responses, so that requests can go on from them by previous_response_id; 0 = none is "
          "remembered")
      ->check(CLI::Range(0.0, 1048576.0));
  flags.Add("--slot-save-path", o.http.slot_files.folder, "directory for /slots/{id}?action=save and restore");
  flags.Add("--slot-save-files", o.http.slot_files.max_files, "maximum number of files in that directory")
      ->check(CLI::Range(0, 1000000));
  flags.Add("--slot-save-mib", o.slot_save_mib, "maximum MiB of all files in that directory")
      ->check(CLI::Range(0.0, 1e9));
  flags.OnOff("--slots", "--no-slots", o.http.slots, "serve GET /slots, which shows what the slots are doing");
}

void AddDownloadFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Downloads");
  flags.Add("-hf,-hfr,--hf-repo", o.download.repo,
            "USER/MODEL[:QUANT] at Hugging Face, downloaded once and kept in the cache that llama.cpp uses too; "
            "default quantisation: Q4_K_M, else the first file");
  flags.Add("-hff,--hf-file", o.download.file, "file of --hf-repo, instead of a quantisation");
  flags.Add("-hft,--hf-token", o.download.token, "access token for Hugging Face");
  flags.Add("-mu,--model-url", o.download.url, "address of a GGUF file to download");
  flags.Add("-mmu,--mmproj-url", o.download.media_url, "address of a projector to download, as for --mmproj");
  flags.Add("-hfd,-hfrd,--hf-repo-draft,--spec-draft-hf", o.download.draft_repo, "as --hf-repo, for the draft model");
  flags.Switch("--offline", o.download.offline, "use what was downloaded before, without asking the network");
  flags.Switch("-cl,--cache-list", o.print.cached_models, "print the models that were downloaded, and end");
}

void AddLogFlags(Flags& flags, ServeOptions& o) {
  flags.Group("Log and information");
  flags.Switch("-v,--verbose,--log-verbose", o.log.verbose,
               "log details for developers, including llama.cpp's own log");
  flags
      .Add("-lv,--verbosity,--log-verbosity", o.log.verbosity,
           "what is logged: 0 and 1 = errors, 2 = warnings, 3 = information, 4 and 5 = all")
      ->check(CLI::NonNegativeNumber);
  flags.Add("--log-file", o.log.file, "file that the log is appended to as well");
  flags.Switch("--log-disable", o.log.disabled, "log nothing");
  flags.OnOff("--log-prefix", "--no-log-prefix", o.log.format.level, "show the level of each line, as a letter");
  flags.OnOff("--log-timestamps", "--no-log-timestamps", o.log.format.time, "show the time of each line");
  flags.Switch("--list-devices", o.print.devices, "print the devices there are, and end");
  flags.Switch("--version", o.print.version, "print the version, and end");
}

}  // namespace

void AddServeFlags(Flags& flags, ServeOptions& options) {
  flags.Follow(LlamaFlags());
  AddModelFlags(flags, options);
  AddContextFlags(flags, options);
  AddSpeculationFlags(flags, options);
  AddDraftModelFlags(flags, options);
  AddSchedulerFlags(flags, options);
  AddHttpFlags(flags, options);
  AddSamplingFlags(flags, options);
  AddDownloadFlags(flags, options);
  AddLogFlags(flags, options);
}

}  // namespace outrider
