// LoopbackNetwork: draft streams to a DraftDesk in the same thread, for tests. Messages take as long as they are told
// to, in either direction, so that everything that a real network can do to the order of things happens, on purpose and
// without waiting.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "remote/draft_desk.h"
#include "remote/draft_network.h"

namespace outrider {

class LoopbackNetwork : public DraftNetwork {
 public:
  // `delay`: of the next message, in calls of Pass, each of which is a millisecond.
  LoopbackNetwork(DraftDesk& desk, ManualClock& clock, std::function<int()> delay)
      : desk_(desk), clock_(clock), delay_(std::move(delay)) {}

  std::unique_ptr<DraftStream> Connect() override {
    if (!reachable) return nullptr;
    auto wire = std::make_shared<Wire>();
    wire->id = ++last_id_;
    wires_.push_back(wire);
    desk_.Connect(wire->id, "client", std::make_shared<Peer>(wire, *this));
    return std::make_unique<Stream>(wire, *this);
  }

  // Time goes on: messages arrive, and the desk works a little.
  void Pass() {
    ++now_;
    clock_.Advance(std::chrono::milliseconds(1));
    for (size_t i = 0; i < wires_.size(); ++i) {
      const std::shared_ptr<Wire> wire = wires_[i];
      if (wire->left && !wire->told_desk) {
        wire->told_desk = true;
        desk_.Disconnect(wire->id);
      }
      while (!wire->to_server.empty() && wire->to_server.front().first <= now_) {
        const draft::v1::ToServer message = std::move(wire->to_server.front().second);
        wire->to_server.pop_front();
        desk_.Receive(wire->id, message);
      }
    }
    desk_.Work();
    std::erase_if(wires_, [](const auto& wire) { return wire->told_desk && wire->over; });
  }

  // All streams break, as if the cable was pulled.
  void Break() {
    for (const auto& wire : wires_) wire->over = wire->left = true;
    for (const auto& wire : wires_) wire->to_client.clear();
  }

  bool reachable = true;
  int reproaches = 0;

 private:
  template <typename Message>
  using Queue = std::deque<std::pair<int, Message>>;

  struct Wire {
    StreamId id = 0;
    Queue<draft::v1::ToServer> to_server;
    Queue<draft::v1::ToClient> to_client;
    bool over = false;  // for the client
    bool left = false;  // by the client
    bool told_desk = false;
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
    void Reproach(const Status&) override { ++network.reproaches; }

    const std::shared_ptr<Wire> wire;
    LoopbackNetwork& network;
  };

  // Messages of one stream keep their order.
  template <typename Message>
  void Put(Queue<Message>& queue, const Message& message) {
    const int soonest = queue.empty() ? 0 : queue.back().first;
    queue.emplace_back(std::max(soonest, now_ + delay_()), message);
  }

  DraftDesk& desk_;
  ManualClock& clock_;
  std::function<int()> delay_;
  std::vector<std::shared_ptr<Wire>> wires_;
  StreamId last_id_ = 0;
  int now_ = 0;
};

}  // namespace outrider
