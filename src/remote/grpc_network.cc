#include "remote/grpc_network.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>

#include "base/address.h"
#include "base/log.h"
#include "base/utf8.h"
#include "remote/draft.grpc.pb.h"
#include "remote/protocol.h"

namespace outrider {
namespace {

using draft::v1::ToClient;
using draft::v1::ToServer;
using std::chrono::milliseconds;

constexpr auto kWatchInterval = milliseconds(200);  // a change of a connection's state is waited for so long at a time
constexpr auto kMinPause = milliseconds(200), kMaxPause = milliseconds(30'000);  // after a failure
constexpr size_t kMaxArrived = 16;   // messages that were not taken yet; no more are read meanwhile
constexpr size_t kMaxUnsent = 1024;  // messages; the stream to a server that does not read them is cancelled

// The channel makes the health checks itself, and is ready only while the server reports that it serves.
constexpr char kServiceConfig[] = R"({"loadBalancingConfig": [{"round_robin": {}}],)"
                                  R"( "healthCheckConfig": {"serviceName": "outrider.draft.v1.Drafting"}})";

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetServiceConfigJSON(kServiceConfig);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A connection that broke silently is noticed within seconds.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // texts must not pass through a proxy
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);    // messages are small
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, static_cast<int>(kMinPause.count()));
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // also the time limit of connecting
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

constexpr size_t kMaxQuotedBytes = 300;  // of a message from a server that is quoted in the log

// One draft server and its state. Thread-safe.
class DraftHost {
 public:
  DraftHost(std::string address, std::shared_ptr<grpc::ChannelCredentials> credentials)
      : address_(std::move(address)),
        channel_(grpc::CreateCustomChannel(address_, credentials, Arguments())),
        stub_(draft::v1::Drafting::NewStub(channel_)) {
    channel_->GetState(true);
  }

  // Whether a stream may be opened now.
  bool Usable(TimePoint now) {
    const bool ready = channel_->GetState(true) == GRPC_CHANNEL_READY;
    const std::lock_guard lock(mutex_);
    return ready && now >= not_before_;
  }

  // The server has drafted, with `model`. Accepting a stream is not enough: a server may do so and never draft.
  void Drafted(const std::string& model) {
    const std::lock_guard lock(mutex_);
    pause_ = kMinPause;
    if (!std::exchange(works_, true))
      LogInfo("draft server {}: drafts with {}", address_, OneLine(model, kMaxQuotedBytes));
  }

  // The server has no free slot.
  void WasFull() {
    const std::lock_guard lock(mutex_);
    not_before_ = std::max(not_before_, Clock::Real().Now() + kMinPause);
  }

  void Failed(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    const TimePoint now = Clock::Real().Now();
    if (now < not_before_) return;  // several streams report the same failure
    const double jitter = std::uniform_real_distribution<double>(0.5, 1)(random_);
    not_before_ = now + std::chrono::duration_cast<Duration>(pause_ * jitter);
    pause_ = std::min<milliseconds>(2 * pause_, kMaxPause);
    if (!std::exchange(works_, false) && reason == reason_) return;
    reason_ = reason;
    LogWarning("draft server {}: {}; requests go on without it", address_, OneLine(reason, kMaxQuotedBytes));
  }

  // Puts this host into `queue` when the state of its connection has changed, or after kWatchInterval.
  void Watch(grpc::CompletionQueue& queue) {
    channel_->NotifyOnStateChange(channel_->GetState(true), std::chrono::system_clock::now() + kWatchInterval, &queue,
                                  this);
  }

  const std::string& address() const { return address_; }
  draft::v1::Drafting::Stub& stub() { return *stub_; }
  std::atomic<int>& streams() { return streams_; }

 private:
  const std::string address_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<draft::v1::Drafting::Stub> stub_;
  std::atomic<int> streams_ = 0;

  std::mutex mutex_;
  bool works_ = false;  // guarded by mutex_, as all below
  std::string reason_;
  milliseconds pause_ = kMinPause;
  TimePoint not_before_{};
  std::minstd_rand random_{std::random_device()()};
};

// A thread that lets gRPC make progress on its connections. gRPC does so only while some thread waits for it, and
// between requests no other thread does: without this one, the TLS handshake would take place during the first request
// and be complete after it.
class ConnectionKeeper {
 public:
  explicit ConnectionKeeper(std::vector<std::shared_ptr<DraftHost>> hosts)
      : hosts_(std::move(hosts)), thread_([this] { Run(); }) {}

  ~ConnectionKeeper() {
    stopping_ = true;
    thread_.join();
  }
  ConnectionKeeper(const ConnectionKeeper&) = delete;
  ConnectionKeeper& operator=(const ConnectionKeeper&) = delete;

 private:
  void Run() {
    for (const auto& host : hosts_) host->Watch(queue_);
    size_t watched = hosts_.size();
    void* host = nullptr;
    for (bool ok = false; watched > 0 && queue_.Next(&host, &ok);) {
      --watched;
      if (stopping_) continue;
      static_cast<DraftHost*>(host)->Watch(queue_);
      ++watched;
    }
    queue_.Shutdown();
    for (bool ok = false; queue_.Next(&host, &ok);) {
    }
  }

  const std::vector<std::shared_ptr<DraftHost>> hosts_;
  grpc::CompletionQueue queue_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

// The gRPC call of one stream. gRPC and the GrpcStream share it until both are done.
//
// While `held_` is true, gRPC does not end the call, so that the stepping thread may start reads and writes. It does so
// under the lock, because otherwise the hold could be released in between. (gRPC never calls back from within a call
// that starts a read or a write.)
class ClientCall : public grpc::ClientBidiReactor<ToServer, ToClient>, public std::enable_shared_from_this<ClientCall> {
 public:
  ClientCall(std::shared_ptr<DraftHost> host, const std::string& token) : host_(std::move(host)) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    ++host_->streams();
  }

  void Start() {
    self_ = shared_from_this();
    host_->stub().async()->Draft(&context_, this);
    AddHold();
    StartRead(&incoming_);
    StartCall();
  }

  void Send(const ToServer& message) {
    const std::lock_guard lock(mutex_);
    if (!held_) return;
    unsent_.push_back(message);
    if (unsent_.size() == 1) StartWrite(&unsent_.front());
    if (unsent_.size() > kMaxUnsent) context_.TryCancel();
  }

  bool Receive(ToClient* message, TimePoint* arrived) {
    {
      const std::lock_guard lock(mutex_);
      if (arrived_.empty()) return false;
      *message = std::move(arrived_.front().message);
      *arrived = arrived_.front().when;
      arrived_.pop_front();
      if (std::exchange(full_, false) && held_) StartRead(&incoming_);
    }
    if (message->has_ready()) {
      model_ = message->ready().model();
    } else if (message->tokens_size() > 0 && !std::exchange(drafted_, true)) {
      host_->Drafted(model_);
    }
    return true;
  }

  void Wait(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] { return !held_ || !arrived_.empty(); });
  }

  bool over() const {
    const std::lock_guard lock(mutex_);
    return !held_ && arrived_.empty();
  }

  // The messages are not needed any more.
  void Abandon() {
    const std::lock_guard lock(mutex_);
    if (!held_) return;  // the server has ended it
    abandoned_ = true;
    context_.TryCancel();
    ReleaseHold();
  }

  void ReportFailure(const Status& reason) {
    host_->Failed(reason.message());
    Abandon();
  }

 private:
  struct Arrival {
    ToClient message;
    TimePoint when;
  };

  // The caller holds mutex_.
  void ReleaseHold() {
    if (std::exchange(held_, false)) RemoveHold();
  }

  void OnReadDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      if (ok) {
        arrived_.push_back({std::move(incoming_), Clock::Real().Now()});
        full_ = arrived_.size() >= kMaxArrived;
        if (!full_) StartRead(&incoming_);
      } else {
        ReleaseHold();
      }
    }
    changed_.notify_one();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    unsent_.pop_front();
    if (!ok) {
      context_.TryCancel();  // the server may not be reading any more
      ReleaseHold();
    }
    if (held_ && !unsent_.empty()) StartWrite(&unsent_.front());
  }

  void OnDone(const grpc::Status& status) override {
    bool failed = false;
    {
      const std::lock_guard lock(mutex_);
      failed = !abandoned_;
    }
    --host_->streams();
    if (failed && status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
      host_->WasFull();
    } else if (failed) {
      host_->Failed(status.error_message().empty() ? "ended the stream" : status.error_message());
    }
    self_.reset();
  }

  const std::shared_ptr<DraftHost> host_;
  grpc::ClientContext context_;
  ToClient incoming_;  // gRPC's between StartRead and OnReadDone
  std::shared_ptr<ClientCall> self_;

  // Used only by the thread that receives.
  std::string model_;     // the one that drafts
  bool drafted_ = false;  // whether tokens have come

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = true;             // guarded by mutex_, as all below
  std::deque<ToServer> unsent_;  // the first is being written
  std::deque<Arrival> arrived_;
  bool full_ = false;  // not reading
  bool abandoned_ = false;
};

class GrpcStream : public DraftStream {
 public:
  explicit GrpcStream(std::shared_ptr<ClientCall> call) : call_(std::move(call)) { call_->Start(); }
  ~GrpcStream() override { call_->Abandon(); }

  void Send(const ToServer& message) override { call_->Send(message); }
  bool Receive(ToClient* message, TimePoint* arrived) override { return call_->Receive(message, arrived); }
  void Wait(TimePoint deadline) override { call_->Wait(deadline); }
  bool over() const override { return call_->over(); }
  void ReportFailure(const Status& reason) override { call_->ReportFailure(reason); }

 private:
  const std::shared_ptr<ClientCall> call_;
};

class GrpcNetwork : public DraftNetwork {
 public:
  GrpcNetwork(std::vector<std::shared_ptr<DraftHost>> hosts, std::string token)
      : hosts_(std::move(hosts)), token_(std::move(token)), keeper_(hosts_) {}

  std::unique_ptr<DraftStream> Connect() override {
    const TimePoint now = Clock::Real().Now();
    std::shared_ptr<DraftHost> best;
    for (const auto& host : hosts_) {
      if (host->Usable(now) && (!best || host->streams() < best->streams())) best = host;
    }
    if (!best) return nullptr;
    return std::make_unique<GrpcStream>(std::make_shared<ClientCall>(best, token_));
  }

  std::vector<DraftServerState> Servers() override {
    const TimePoint now = Clock::Real().Now();
    std::vector<DraftServerState> servers;
    for (const auto& host : hosts_) {
      servers.push_back({host->address(), host->Usable(now), host->streams(), answer_seconds_});
    }
    return servers;
  }

  void SetAnswerSeconds(double seconds) override { answer_seconds_ = seconds; }

 private:
  const std::vector<std::shared_ptr<DraftHost>> hosts_;
  const std::string token_;
  std::atomic<double> answer_seconds_ = 0;
  const ConnectionKeeper keeper_;
};

}  // namespace

Result<std::unique_ptr<DraftNetwork>> MakeGrpcNetwork(const GrpcNetworkOptions& options) {
  if (options.servers.empty()) return InvalidArgument("the drafter 'remote' needs a server: --spec remote:host:port");
  std::vector<std::shared_ptr<DraftHost>> hosts;
  for (const std::string& address : options.servers) {
    if (auto parsed = ParseAddress(address); !parsed.ok()) return parsed.status();
    auto credentials = MakeChannelCredentials(options.credentials, address);
    if (!credentials.ok()) return credentials.status();
    hosts.push_back(std::make_shared<DraftHost>(address, *credentials));
  }
  return std::unique_ptr<DraftNetwork>(std::make_unique<GrpcNetwork>(std::move(hosts), options.credentials.token));
}

}  // namespace outrider
