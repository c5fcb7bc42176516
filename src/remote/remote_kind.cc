#include "remote/remote_kind.h"

#include "remote/grpc_network.h"
#include "remote/protocol.h"
#include "remote/remote_drafter.h"

namespace outrider {

DrafterKind RemoteKind(std::shared_ptr<DraftNetwork>* network) {
  return {"remote", "a small model on another machine (outrider draft) that guesses what the large one says",
          [network](DrafterParameters& parameters,
                    const DrafterEnvironment& environment) -> Result<std::unique_ptr<Drafter>> {
            GrpcNetworkOptions servers;
            RemoteDrafterOptions options;
            servers.servers = parameters.Values();
            servers.credentials.folder = parameters.Text("cert", "");
            servers.credentials.token = parameters.Text("token", "");
            servers.credentials.insecure = parameters.Flag("insecure", false);
            options.candidates = parameters.Integer("candidates", options.candidates, 1, kMaxCandidates);
            if (Status status = parameters.Check(); !status.ok()) return status;
            auto made = MakeGrpcNetwork(servers);
            if (!made.ok()) return made.status();
            *network = std::move(*made);
            return std::unique_ptr<Drafter>(
                std::make_unique<RemoteDrafter>(*network, environment.tokenizer, environment.n_sequences, options));
          }};
}

}  // namespace outrider
