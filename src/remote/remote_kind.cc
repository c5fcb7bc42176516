#include "remote/remote_kind.h"

#include "remote/grpc_network.h"
#include "remote/protocol.h"
#include "remote/remote_drafter.h"

namespace outrider {

DrafterKind RemoteKind() {
  return {"remote", "a small model on another machine (outrider draft) that guesses what the large one says",
          [](DrafterParameters& parameters, const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            GrpcNetworkOptions network;
            RemoteDrafterOptions options;
            network.servers = parameters.Values();
            network.credentials.folder = parameters.Text("cert", "");
            network.credentials.token = parameters.Text("token", "");
            network.credentials.insecure = parameters.Flag("insecure", false);
            options.candidates = parameters.Integer("candidates", options.candidates, 1, kMaxCandidates);
            if (Status status = parameters.Check(); !status.ok()) return status;
            auto servers = MakeGrpcNetwork(network);
            if (!servers.ok()) return servers.status();
            return std::unique_ptr<Drafter>(std::make_unique<RemoteDrafter>(std::move(*servers), environment.tokenizer,
                                                                            environment.n_sequences, options));
          }};
}

}  // namespace outrider
