// The registry: which drafters there are, by name, with their parameters. Adding one is a header, a source file and a
// line in registry.cc (docs/ADDING_A_DRAFTER.md).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "drafters/drafter.h"
#include "engine/engine.h"
#include "engine/hidden_head.h"
#include "engine/tokenizer.h"
#include "sampling/filter.h"

namespace outrider {

// A model that drafts: everything outlives the drafters.
struct DraftModel {
  Engine& engine;
  const Tokenizer& tokenizer;
  FilterFactory& filters;
};

// A head that drafts from the target's hidden states: everything outlives the drafters.
struct DraftHead {
  HiddenHead& head;
  FilterFactory& filters;
  Token vocabulary;  // token ids below this mean the same to the target and the head
};

// What drafters are made from. Everything outlives them.
struct DrafterEnvironment {
  int n_sequences = 0;
  const Tokenizer& tokenizer;         // the target's
  const DraftModel* model = nullptr;  // --model-draft; null if there is none
  bool remember = true;               // drafters may use what they learned from earlier requests
  Engine* target = nullptr;           // for drafters that read its hidden states (Engine::ProvideHidden)
  const DraftHead* eagle3 = nullptr;  // --model-draft, if that is an EAGLE-3 head
  const DraftHead* mtp = nullptr;     // the head in the target's own file
};

// A drafter asked for by name: "suffix", "ngram-simple:size_n=8,size_m=16", or "remote:host:8090,other:8090,token=x".
struct DrafterChoice {
  std::string name;
  std::map<std::string, std::string> parameters;
  std::vector<std::string> values = {};  // without a key
};

Result<DrafterChoice> ParseDrafterChoice(std::string_view text);

// Typed access to the parameters of a choice; keeps the first error.
class DrafterParameters {
 public:
  explicit DrafterParameters(const DrafterChoice& choice) : choice_(choice) {}

  int Integer(const std::string& name, int default_value, int min, int max);
  bool Flag(const std::string& name, bool default_value);
  std::string Text(const std::string& name, std::string default_value);
  const std::vector<std::string>& Values();  // those without a key

  // The first bad value, or a parameter that the drafter does not have (the message lists those that exist).
  Status Check() const;

 private:
  const std::string* Find(const std::string& name);

  const DrafterChoice& choice_;
  std::vector<std::string> known_;
  bool takes_values_ = false;
  Status error_;
};

struct DrafterKind {
  std::string name;
  std::string summary;  // one line, for --help and /props
  std::function<Result<std::unique_ptr<Drafter>>(DrafterParameters&, const DrafterEnvironment&)> make;
};

// All but `remote`, which src/remote defines and apps/speculation.cc adds.
const std::vector<DrafterKind>& DrafterKinds();

// One of `kinds`. kInvalidArgument with a sentence that names what exists, if the name or a parameter is wrong.
Result<std::unique_ptr<Drafter>> MakeDrafter(const DrafterChoice& choice, const DrafterEnvironment& environment,
                                             const std::vector<DrafterKind>& kinds = DrafterKinds());

}  // namespace outrider
