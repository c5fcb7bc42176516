#include "remote/draft_server.h"

#include <fmt/format.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>

#include "base/secrets.h"
#include "remote/draft.grpc.pb.h"
#include "remote/protocol.h"

namespace outrider {
namespace {

using draft::v1::ToClient;
using draft::v1::ToServer;

constexpr size_t kMaxUnsent = 64;               // messages; a client that does not read them is disconnected
constexpr size_t kGrpcMemoryBytes = 256 << 20;  // bytes
constexpr int kMaxStreams = 1024;               // of all clients
constexpr char kShuttingDown[] = "the draft server is shutting down";
constexpr auto kTimeToFinish = std::chrono::milliseconds(500);

grpc::Status ToGrpc(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return grpc::Status::OK;
    case StatusCode::kInvalidArgument:
      return {grpc::StatusCode::INVALID_ARGUMENT, status.message()};
    case StatusCode::kUnauthenticated:
      return {grpc::StatusCode::UNAUTHENTICATED, status.message()};
    case StatusCode::kResourceExhausted:
      return {grpc::StatusCode::RESOURCE_EXHAUSTED, status.message()};
    case StatusCode::kUnavailable:
      return {grpc::StatusCode::UNAVAILABLE, status.message()};
    default:
      return {grpc::StatusCode::INTERNAL, status.message()};
  }
}

// The gRPC call of one stream. gRPC does not own it: the call itself (self_) and the worker, as its peer, hold a
// reference until they are done.
class ServerCall : public grpc::ServerBidiReactor<ToServer, ToClient>, public DraftPeer {
 public:
  // `calls` counts the open calls and outlives this one.
  ServerCall(DraftWorker& worker, std::atomic<int>& calls, grpc::CallbackServerContext& context)
      : worker_(worker), calls_(calls), context_(context) {
    ++calls_;
  }

  static ServerCall* Begin(DraftWorker& worker, std::atomic<int>& calls, grpc::CallbackServerContext& context,
                           std::string client) {
    auto call = std::make_shared<ServerCall>(worker, calls, context);
    call->self_ = call;
    call->id_ = worker.Connect(std::move(client), call);
    call->StartRead(&call->incoming_);
    return call.get();
  }

  void Send(const ToClient& message) override {
    const ToClient* next = nullptr;
    bool stuck = false;
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
      unsent_.push_back(message);
      stuck = unsent_.size() > kMaxUnsent;
      if (unsent_.size() == 1) next = &unsent_.front();
    }
    if (stuck) context_.TryCancel();
    if (next != nullptr) StartWrite(next);
  }

  void ReadMore() override { StartRead(&incoming_); }

  void Close(const Status& status) override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      status_ = ToGrpc(status);
      if (!unsent_.empty()) {
        context_.TryCancel();  // the client may never read the current message; OnWriteDone finishes the call
        return;
      }
    }
    Finish(status_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (ok) return worker_.Receive(id_, std::move(incoming_));
    worker_.Disconnect(id_);
  }

  void OnWriteDone(bool ok) override {
    const ToClient* next = nullptr;
    bool finish = false;
    {
      const std::lock_guard lock(mutex_);
      unsent_.pop_front();
      if (!ok) unsent_.clear();
      if (!unsent_.empty()) next = &unsent_.front();
      finish = closing_ && unsent_.empty();
    }
    if (next != nullptr) StartWrite(next);
    if (finish) Finish(status_);
  }

  void OnCancel() override { worker_.Disconnect(id_); }
  void OnDone() override {
    --calls_;
    self_.reset();
  }

  DraftWorker& worker_;
  std::atomic<int>& calls_;
  grpc::CallbackServerContext& context_;
  StreamId id_ = 0;
  ToServer incoming_;  // gRPC's between StartRead and OnReadDone
  std::shared_ptr<ServerCall> self_;

  std::mutex mutex_;
  std::deque<ToClient> unsent_;  // guarded by mutex_; the first is being written
  bool closing_ = false;         // guarded by mutex_
  grpc::Status status_;          // once closing_
};

// A call that is refused at once.
class Refusal : public grpc::ServerBidiReactor<ToServer, ToClient> {
 public:
  explicit Refusal(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

class Service : public draft::v1::Drafting::CallbackService {
 public:
  Service(DraftWorker& worker, std::string token) : worker_(worker), token_(std::move(token)) {}

  grpc::ServerBidiReactor<ToServer, ToClient>* Draft(grpc::CallbackServerContext* context) override {
    if (stopping_) return new Refusal({grpc::StatusCode::UNAVAILABLE, kShuttingDown});
    if (calls_ >= kMaxStreams) {
      return new Refusal({grpc::StatusCode::RESOURCE_EXHAUSTED, "the draft server has too many streams"});
    }
    // A client is identified by its certificate, or else by the address of its machine.
    const auto identity = context->auth_context();
    std::string client;
    if (identity && identity->IsPeerAuthenticated()) {
      for (const grpc::string_ref& pem : identity->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME)) {
        client.append(pem.data(), pem.size());
      }
    } else if (!token_.empty() && !HasToken(*context)) {
      return new Refusal(
          {grpc::StatusCode::UNAUTHENTICATED, "the draft server wants a certificate of its authority, or its token"});
    } else {
      client = context->peer();
      client.resize(std::min(client.size(), client.rfind(':')));
    }
    return ServerCall::Begin(worker_, calls_, *context, std::move(client));
  }

  // New streams are refused.
  void Stop() { stopping_ = true; }

 private:
  bool HasToken(const grpc::CallbackServerContext& context) const {
    const auto& metadata = context.client_metadata();
    const auto found = metadata.find("authorization");
    return found != metadata.end() &&
           ConstantTimeEquals({found->second.data(), found->second.size()}, "Bearer " + token_);
  }

  DraftWorker& worker_;
  const std::string token_;
  std::atomic<int> calls_ = 0;
  std::atomic<bool> stopping_ = false;
};

class GrpcDraftServer : public DraftServer {
 public:
  GrpcDraftServer(const DraftModel& model, const DraftServerOptions& options)
      : worker_(model, options.batcher), service_(worker_, options.credentials.token) {}

  ~GrpcDraftServer() override {
    service_.Stop();
    worker_.CloseAll(Unavailable(kShuttingDown));
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + kTimeToFinish);
  }

  Status Listen(const DraftServerOptions& options) {
    auto credentials = MakeServerCredentials(options.credentials, options.listen);
    if (!credentials.ok()) return credentials.status();
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort(options.listen, *credentials, &port_);
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.SetResourceQuota(grpc::ResourceQuota("draft").Resize(kGrpcMemoryBytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
    server_ = builder.BuildAndStart();
    if (!server_ || port_ == 0) {
      server_.reset();
      return InvalidArgument(fmt::format("cannot listen on {}: is the port taken?", options.listen));
    }
    server_->GetHealthCheckService()->SetServingStatus(draft::v1::Drafting::service_full_name(), true);
    return {};
  }

  int port() const override { return port_; }
  DraftStats stats() const override { return worker_.stats(); }

 private:
  DraftWorker worker_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace

Result<std::unique_ptr<DraftServer>> DraftServer::Start(const DraftModel& model, const DraftServerOptions& options) {
  auto server = std::make_unique<GrpcDraftServer>(model, options);
  if (Status status = server->Listen(options); !status.ok()) return status;
  return std::unique_ptr<DraftServer>(std::move(server));
}

}  // namespace outrider
