// outrider: one program, a subcommand for each thing it does.
#include <cstdio>
#include <cstring>
#include <string>

#include "apps/check.h"
#include "apps/flags.h"
#include "apps/serve.h"
#include "apps/serve_flags.h"
#include "apps/version.h"

namespace outrider {
namespace {

constexpr int kBrokenPromise = 1;
constexpr int kBadUsage = 2;

constexpr const char* kHelp =
    "usage: outrider [COMMAND] [FLAGS]\n\n"
    "  serve    serve a model over HTTP (the default)\n"
    "  check    prove that speculation and batching do not change the text on this machine\n\n"
    "outrider COMMAND --help lists the flags of a command; outrider --version tells the version.\n";

int Complain(const std::string& sentence) {
  std::fprintf(stderr, "outrider: %s\n", sentence.c_str());
  return kBadUsage;
}

// A subcommand that takes the flags of serve.
struct Command {
  const char* name;
  const char* purpose;
  int (*run)(ServeOptions options);
};

int RunServe(ServeOptions options) {
  const Status status = Serve(std::move(options));
  return status.ok() ? 0 : Complain(status.message());
}

int RunCheck(ServeOptions options) {
  bool kept = false;
  const Status status = Check(std::move(options), &kept);
  if (!status.ok()) return Complain(status.message());
  return kept ? 0 : kBrokenPromise;
}

constexpr Command kServe = {"serve", "Serves a model over HTTP with OpenAI's, Anthropic's and llama.cpp's APIs.",
                            RunServe};
constexpr Command kCheck = {
    "check", "Proves that logits do not depend on the batch and that no drafter changes a text.", RunCheck};

int Run(const Command& command, int argc, const char* const* argv) {
  CLI::App app(command.purpose, std::string("outrider ") + command.name);
  app.set_config("--config", "", "file with flags: key = value, keys named as the long flags (TOML or INI)");
  app.allow_config_extras(CLI::config_extras_mode::error);
  ServeOptions options;
  Flags flags(app);
  AddServeFlags(flags, options);
  if (argc == 1 && std::strcmp(argv[0], "--help-markdown") == 0) {
    std::printf("# Flags of `outrider serve`\n\nWritten by `outrider serve --help-markdown`; a test keeps it true.\n%s",
                flags.MarkdownHelp().c_str());
    return 0;
  }
  try {
    std::vector<std::string> arguments = flags.Translate(argc, argv);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForHelp&) {
    std::printf("%s\n\nusage: outrider %s [FLAGS]\n%s", command.purpose, command.name, flags.Help().c_str());
    std::puts("  --config FILE                          flags from a file: key = value, keys named as the long flags");
    return 0;
  } catch (const CLI::ExtrasError&) {
    const std::string extra = app.remaining().empty() ? "" : app.remaining().front();
    const std::string nearest = flags.Nearest(extra);
    return Complain("'" + extra + "' is not a flag" +
                    (nearest.empty() ? "; outrider serve --help lists them" : "; did you mean " + nearest + "?"));
  } catch (const CLI::ParseError& error) {
    return Complain(error.what());
  }
  return command.run(std::move(options));
}

int Main(int argc, const char* const* argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(kHelp, stdout);
    return 0;
  }
  if (command == "--version" || command == "version") {
    std::printf("%s\n", VersionLine().c_str());
    return 0;
  }
  for (const Command& known : {kServe, kCheck}) {
    if (command == known.name) return Run(known, argc - 2, argv + 2);
  }
  if (command.empty() || command[0] == '-') return Run(kServe, argc - 1, argv + 1);
  return Complain("'" + command + "' is not a command; outrider --help lists them");
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  try {
    return outrider::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "outrider: %s\n", error.what());
    return 1;
  }
}
