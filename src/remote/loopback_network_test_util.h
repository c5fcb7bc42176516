// LoopbackNetwork: draft streams to a DraftBatcher in the same thread, for tests. The test sets how long messages take
// in either direction, so that it can produce every order of events that a real network can, without waiting.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "remote/draft_batcher.h"
#include "remote/draft_network.h"

namespace outrider {

class LoopbackNetwork : public DraftNetwork {
 public:
  // `delay`: returns how long the next message takes, in calls of Pass, each of which is a millisecond.
  LoopbackNetwork(DraftBatcher& batcher, ManualClock& clock, std::function<int()> delay)
      : batcher_(batcher), clock_(clock), delay_(std::move(delay)) {}

  std::unique_ptr<DraftStream> Connect() override {
    if (!reachable) return nullptr;
    auto wire = std::make_shared<Wire>();
    wire->id = ++last_id_;
    wires_.push_back(wire);
    batcher_.Connect(wire->id, "client", std::make_shared<Peer>(wire, *this));
    return std::make_unique<Stream>(wire, *this);
  }

  std::vector<DraftServerState> Servers() override { return {{"loopback", reachable, 0, answer_seconds_}}; }
  void SetAnswerSeconds(double seconds) override { answer_seconds_ = seconds; }

  // One millisecond passes: messages arrive, and the batcher computes one batch.
  void Pass() {
    ++now_;
    clock_.Advance(std::chrono::milliseconds(1));
    if (hangs) return;
    for (size_t i = 0; i < wires_.size(); ++i) {
      const std::shared_ptr<Wire> wire = wires_[i];
      if (wire->left && !wire->batcher_knows) {
        wire->batcher_knows = true;
        batcher_.Disconnect(wire->id);
      }
      while (!wire->to_server.empty() && wire->to_server.front().first <= now_) {
        const draft::v1::ToServer message = std::move(wire->to_server.front().second);
        wire->to_server.pop_front();
        batcher_.Receive(wire->id, message);
      }
    }
    batcher_.Work();
    std::erase_if(wires_, [](const auto& wire) { return wire->batcher_knows && wire->over; });
  }

  // All streams break, and messages on their way to the client are lost.
  void Break() {
    for (const auto& wire : wires_) wire->over = wire->left = true;
    for (const auto& wire : wires_) wire->to_client.clear();
  }

  bool reachable = true;
  bool hangs = false;                 // the server accepts streams, but handles no messages and computes nothing
  std::vector<std::string> failures;  // that were reported

 private:
  template <typename Message>
  using Queue = std::deque<std::pair<int, Message>>;

  struct Wire {
    StreamId id = 0;
    Queue<draft::v1::ToServer> to_server;
    Queue<draft::v1::ToClient> to_client;
    bool over = false;  // the server or the network has ended it
    bool left = false;  // the client has ended it
    bool batcher_knows = false;
  };

  struct Peer : DraftPeer {
    Peer(std::shared_ptr<Wire> its_wire, LoopbackNetwork& its_network)
        : wire(std::move(its_wire)), network(its_network) {}
    void Send(const draft::v1::ToClient& message) override { network.Put(wire->to_client, message); }
    void ReadMore() override {}
    void Close(const Status&) override { wire->over = true; }

    const std::shared_ptr<Wire> wire;
    LoopbackNetwork& network;
  };

  struct Stream : DraftStream {
    Stream(std::shared_ptr<Wire> its_wire, LoopbackNetwork& its_network)
        : wire(std::move(its_wire)), network(its_network) {}
    ~Stream() override { wire->left = true; }
    void Send(const draft::v1::ToServer& message) override { network.Put(wire->to_server, message); }
    bool Receive(draft::v1::ToClient* message, TimePoint* arrived) override {
      if (wire->to_client.empty() || wire->to_client.front().first > network.now_) return false;
      *message = std::move(wire->to_client.front().second);
      *arrived = network.clock_.Now() - std::chrono::milliseconds(network.now_ - wire->to_client.front().first);
      wire->to_client.pop_front();
      return true;
    }
    void Wait(TimePoint) override { network.Pass(); }
    bool over() const override { return wire->over && wire->to_client.empty(); }
    void ReportFailure(const Status& reason) override { network.failures.push_back(reason.message()); }

    const std::shared_ptr<Wire> wire;
    LoopbackNetwork& network;
  };

  // Messages of one stream keep their order, whatever their delays.
  template <typename Message>
  void Put(Queue<Message>& queue, const Message& message) {
    const int soonest = queue.empty() ? 0 : queue.back().first;
    queue.emplace_back(std::max(soonest, now_ + delay_()), message);
  }

  DraftBatcher& batcher_;
  ManualClock& clock_;
  std::function<int()> delay_;
  std::vector<std::shared_ptr<Wire>> wires_;
  StreamId last_id_ = 0;
  double answer_seconds_ = 0;
  int now_ = 0;
};

}  // namespace outrider
