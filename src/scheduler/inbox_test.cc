#include "scheduler/inbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace outrider {
namespace {

PendingRequest RequestOf(int max_tokens) {
  GenerationRequest request;
  request.max_tokens = max_tokens;  // tells them apart
  return {std::make_shared<Generation>(std::move(request)), nullptr, TimePoint()};
}

std::vector<int> Numbers(const std::vector<PendingRequest>& requests) {
  std::vector<int> numbers;
  for (const PendingRequest& request : requests) numbers.push_back(request.generation->request().max_tokens);
  return numbers;
}

using Order = std::vector<int>;

TEST(InboxTest, RequestsThatGetNoSlotKeepTheirPlace) {
  Inbox inbox(8, 1);
  for (const int number : {1, 2, 3}) ASSERT_TRUE(inbox.Add(RequestOf(number)).ok());
  std::vector<PendingRequest> taken = inbox.TakeAll();
  EXPECT_EQ(Numbers(taken), Order({1, 2, 3}));
  ASSERT_TRUE(inbox.Add(RequestOf(4)).ok());  // meanwhile
  EXPECT_EQ(inbox.waiting(), 4u) << "those that were taken still wait";
  taken.erase(taken.begin());
  inbox.PutBack(std::move(taken), 0);
  EXPECT_EQ(inbox.waiting(), 3u);
  EXPECT_EQ(Numbers(inbox.TakeAll()), Order({2, 3, 4}));
}

TEST(InboxTest, TooManyAreRefusedAlsoWhileTheOthersAreLookedAt) {
  Inbox inbox(2, 1);
  for (const int number : {1, 2, 3})
    EXPECT_TRUE(inbox.Add(RequestOf(number)).ok()) << "one for the free slot, two wait";
  std::vector<PendingRequest> taken = inbox.TakeAll();
  const Status refused = inbox.Add(RequestOf(4));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), "all 1 slots are busy and 3 requests wait already: try again later");
  taken.erase(taken.begin());
  inbox.PutBack(std::move(taken), 0);
  EXPECT_FALSE(inbox.Add(RequestOf(5)).ok());
  EXPECT_EQ(inbox.refused(), 2u);
  (void)inbox.TakeAll();
  inbox.PutBack({}, 0);
  EXPECT_TRUE(inbox.Add(RequestOf(6)).ok());
}

TEST(InboxTest, ACommandRunsOnItsCallersThreadWhereNobodySteps) {
  Inbox inbox(1, 1);
  std::thread::id ran_on;
  inbox.RunBetweenSteps([&] {
    ran_on = std::this_thread::get_id();
    EXPECT_EQ(inbox.waiting(), 0u) << "the lock is free meanwhile";
  });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(InboxTest, ACommandRunsOnTheSteppingThreadAndIsWaitedFor) {
  Inbox inbox(1, 1);
  inbox.BeginStepping();
  std::thread::id stepping_thread;
  std::thread stepping([&] {
    stepping_thread = std::this_thread::get_id();
    while (inbox.WaitForWork()) inbox.RunCommands();
    inbox.EndStepping();
  });
  for (int i = 0; i < 100; ++i) {
    std::thread::id ran_on;
    inbox.RunBetweenSteps([&] { ran_on = std::this_thread::get_id(); });
    EXPECT_EQ(ran_on, stepping_thread);
  }
  inbox.Stop(TimePoint::max());
  inbox.WaitUntilStopped();
  stepping.join();
}

// Whoever asks while the server stops is answered, by the stepping thread or by itself.
TEST(InboxTest, NoCommandIsLostAtTheEnd) {
  for (int round = 0; round < 50; ++round) {
    Inbox inbox(1, 1);
    inbox.BeginStepping();
    std::thread stepping([&] {
      while (inbox.WaitForWork()) inbox.RunCommands();
      inbox.EndStepping();
    });
    std::atomic<int> run = 0;
    std::vector<std::thread> askers;
    for (int i = 0; i < 4; ++i) askers.emplace_back([&] { inbox.RunBetweenSteps([&] { ++run; }); });
    inbox.Stop(TimePoint::max());
    for (std::thread& asker : askers) asker.join();
    stepping.join();
    EXPECT_EQ(run, 4);
  }
}

TEST(InboxTest, StoppingRefusesRequestsAndCanOnlyBecomeSooner) {
  Inbox inbox(1, 1);
  EXPECT_FALSE(inbox.stop_until());
  inbox.Stop(TimePoint() + std::chrono::seconds(5));
  inbox.Stop(TimePoint() + std::chrono::seconds(9));
  EXPECT_EQ(inbox.stop_until(), TimePoint() + std::chrono::seconds(5));
  inbox.Stop(TimePoint() + std::chrono::seconds(1));
  EXPECT_EQ(inbox.stop_until(), TimePoint() + std::chrono::seconds(1));
  EXPECT_EQ(inbox.Add(RequestOf(1)).code(), StatusCode::kUnavailable);
  EXPECT_FALSE(inbox.WaitForWork()) << "nothing is left to do";
}

// A slot whose memory cannot be copied, for want of memory, must not end the thread that steps.
TEST(InboxTest, WhatACommandThrowsReachesItsCallerAndNobodyElse) {
  Inbox inbox(1, 1);
  EXPECT_THROW(inbox.RunBetweenSteps([] { throw std::bad_alloc(); }), std::bad_alloc) << "nobody steps";
  inbox.BeginStepping();
  std::thread stepping([&] {
    while (inbox.WaitForWork()) inbox.RunCommands();
    inbox.EndStepping();
  });
  EXPECT_THROW(inbox.RunBetweenSteps([] { throw std::bad_alloc(); }), std::bad_alloc);
  bool ran = false;
  inbox.RunBetweenSteps([&] { ran = true; });
  EXPECT_TRUE(ran);
  inbox.Stop(TimePoint::min());
  stepping.join();
}

}  // namespace
}  // namespace outrider
