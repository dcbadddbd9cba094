// Timers and posted tasks of the reactor, driven by a caller and by nobody.
#include "reactor_harness.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

// Broken: renewals and deadlines would come in the wrong order.
TEST(reactor_timer, timers_fire_in_the_order_of_their_times) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  std::string said;
  const time_point start = reactor.now();
  // In one task: none of them can fire before all are set.
  reactor.post([&] {
    reactor.at(start + 15ms, [&] {
      said += 'd';
      finish(reactor, done);
    });
    reactor.at(start + 5ms, [&] { said += 'b'; });
    reactor.at(start + 5ms, [&] { said += 'c'; });
    reactor.at(start - 1s, [&] { said += 'a'; });
  });
  reactor.wait(done);
  EXPECT_EQ(said, "abcd");
  EXPECT_GE(reactor.now(), start + 15ms);
}

// Broken: a program that only uses callbacks would see no renewal and lose its leases.
TEST(reactor_timer, a_timer_fires_on_the_engines_thread_while_nobody_drives) {
  epoll_reactor reactor;
  std::promise<std::thread::id> ran;
  auto where = ran.get_future();
  const time_point due = reactor.now() + 2ms;
  reactor.at(due, [&] { ran.set_value(std::this_thread::get_id()); });
  ASSERT_TRUE(arrives(where));
  EXPECT_NE(where.get(), std::this_thread::get_id());
  EXPECT_GE(reactor.now(), due);
}

// Broken: while a thread waits for a lock, the process's other leases would not be renewed, or only
// by a hop.
TEST(reactor_timer, a_timer_fires_on_the_callers_thread_while_it_drives) {
  epoll_reactor reactor;
  ASSERT_TRUE(eventually([&] { return engine_leads(reactor); }));
  std::atomic<bool> done{false};
  std::thread::id ran;
  run_while_driving(reactor, done, [&] {
    reactor.at(reactor.now() + 5ms, [&] {
      ran = std::this_thread::get_id();
      finish(reactor, done);
    });
  });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

// Broken: a timer added between two callers, when nobody leads, would be late until the engine's
// next look, or forever.
TEST(reactor_timer, a_timer_fires_shortly_after_callers_have_driven) {
  epoll_reactor reactor;
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> done{false};
    reactor.post([&] { finish(reactor, done); });
    reactor.wait(done);
    std::promise<void> ran;
    auto fired = ran.get_future();
    reactor.at(reactor.now() + 100us, [&] { ran.set_value(); });
    ASSERT_TRUE(arrives(fired));
  }
}

// Broken: a timer for which a caller had set the alarm, and which goes off when that caller has just
// left, would be seen by the engine and not run: it would spin while holding the loop's lock.
TEST(reactor_timer, a_timer_whose_alarm_nobody_heard_fires) {
  epoll_reactor reactor;
  for (int round = 0; round < 200; ++round) {
    std::promise<void> ran;
    auto fired = ran.get_future();
    reactor.at(reactor.now() + 400us, [&] { ran.set_value(); });
    for (int i = 0; i < 3; ++i) {
      std::atomic<bool> done{false};
      reactor.notify([&] { finish(reactor, done); });
      reactor.wait(done);
    }
    ASSERT_TRUE(arrives(fired));
  }
}

// Broken: cancelled deadlines would end operations that were answered long ago.
TEST(reactor_timer, a_cancelled_timer_does_not_fire) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  bool fired = false;
  spi::runtime::timer_id cancelled = 0;
  spi::runtime::timer_id last = 0;
  reactor.post([&] {
    const time_point start = reactor.now();
    cancelled = reactor.at(start + 2ms, [&] { fired = true; });
    last = reactor.at(start + 4ms, [&] { finish(reactor, done); });
    EXPECT_NE(cancelled, last);
    reactor.cancel(cancelled);
  });
  reactor.wait(done);
  EXPECT_FALSE(fired);
  reactor.cancel(last);       // has fired
  reactor.cancel(cancelled);  // was cancelled
  reactor.cancel(0);
}

// Broken: a timer that cancels another one due at the same moment (an answer and its deadline)
// would not stop it from firing.
TEST(reactor_timer, a_timer_cancels_another_that_is_due_at_the_same_time) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  bool fired = false;
  spi::runtime::timer_id second = 0;
  reactor.post([&] {
    const time_point due = reactor.now() - 1ms;
    reactor.at(due, [&] { reactor.cancel(second); });
    second = reactor.at(due, [&] { fired = true; });
    reactor.at(due, [&] { finish(reactor, done); });
  });
  reactor.wait(done);
  EXPECT_FALSE(fired);
}

// Broken: the leader would sleep until the timer it knew when it fell asleep.
TEST(reactor_timer, an_earlier_timer_reaches_a_leader_that_sleeps_for_a_later_one) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  reactor.at(reactor.now() + 1h, [] {});
  std::jthread other([&] {
    EXPECT_TRUE(eventually([&] { return caller_leads(reactor); }));
    reactor.at(reactor.now() + 1ms, [&] { finish(reactor, done); });
  });
  reactor.wait(done);
}

// Broken: with many leases, timers would be lost, or adding and cancelling would not scale.
TEST(reactor_timer, a_hundred_thousand_timers_all_fire_or_are_cancelled) {
  constexpr std::size_t count = 100'000;
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  std::atomic<std::size_t> fired{0};
  std::vector<spi::runtime::timer_id> ids;
  const time_point start = reactor.now();
  for (std::size_t i = 0; i < count; ++i) {
    const bool kept = i % 2 == 0;
    ids.push_back(reactor.at(kept ? start + duration(i % 1'000) : start + 1h, [&] {
      if (fired.fetch_add(1) + 1 == count / 2) finish(reactor, done);
    }));
  }
  for (std::size_t i = 1; i < count; i += 2) reactor.cancel(ids[i]);
  reactor.wait(done);
  EXPECT_EQ(fired.load(), count / 2);
}

// Broken: work posted while all sleep would wait until something else happens.
TEST(reactor_post, a_posted_task_runs_whichever_thread_leads) {
  epoll_reactor reactor;
  for (int round = 0; round < 200; ++round) {
    std::promise<void> ran;
    auto finished = ran.get_future();
    reactor.post([&] { ran.set_value(); });
    ASSERT_TRUE(arrives(finished));
  }
  ASSERT_TRUE(eventually([&] { return engine_leads(reactor); }));
  std::atomic<bool> done{false};
  std::thread::id ran;
  run_while_driving(reactor, done, [&] {
    ran = std::this_thread::get_id();
    finish(reactor, done);
  });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

// Broken: a task that posts its successor forever would starve timers and descriptors.
TEST(reactor_post, a_task_that_posts_itself_does_not_keep_out_timers_and_descriptors) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  const socket_pair sockets;
  bool heard = false;
  std::function<void()> again = [&] { reactor.post([&] { again(); }); };
  again();
  const auto id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness) {
    heard = sockets.hear() == 'x' || heard;
    reactor.at(reactor.now() + 1ms, [&] { finish(reactor, done); });
  });
  sockets.say('x');
  reactor.wait(done);
  reactor.unwatch(id);
  EXPECT_TRUE(heard);
}

// Broken: the reactor would dead-lock when a task uses it, or when a dropped one does so in its
// destructor.
TEST(reactor_post, tasks_run_and_end_outside_its_locks) {
  auto reactor = std::make_shared<epoll_reactor>();
  std::atomic<bool> done{false};
  // A task whose captures use the reactor when they are destroyed.
  const auto task = [used = reactor.get()] {
    std::shared_ptr<void> at_end(nullptr, [used](void*) {
      used->cancel(used->at(used->now() + 1h, [] {}));
      used->post([] {});
    });
    return [kept = std::move(at_end)] {};
  };
  reactor->post(task());
  reactor->cancel(reactor->at(reactor->now() + 1h, task()));
  reactor->at(reactor->now() + 1h, task());
  reactor->post([&] { finish(*reactor, done); });
  reactor->wait(done);
  reactor.reset();
}

// Broken: one bad task would end the program, or leave the loop without a leader.
TEST(reactor_post, what_a_task_throws_is_swallowed_and_counted) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  reactor.post([] { throw std::runtime_error("task"); });
  reactor.at(reactor.now(), [] { throw std::runtime_error("timer"); });
  reactor.at(reactor.now() + 2ms, [&] { finish(reactor, done); });
  reactor.wait(done);
  EXPECT_EQ(reactor.loop().swallowed(), 2U);
}

}  // namespace
}  // namespace holdfast::test
