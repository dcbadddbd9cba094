// Leader and followers: waiting, waking, passing on leadership.
#include "reactor_harness.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace holdfast::test {
namespace {

// A thread that waits for its own flag.
struct waiting_thread {
  explicit waiting_thread(epoll_reactor& used)
      : reactor(&used), thread([this] { reactor->wait(done); }) {}
  ~waiting_thread() { finish(*reactor, done); }
  waiting_thread(const waiting_thread&) = delete;
  waiting_thread& operator=(const waiting_thread&) = delete;

  epoll_reactor* reactor;
  std::atomic<bool> done{false};
  std::jthread thread;
};

std::thread::id leading_thread(epoll_reactor& reactor) {
  std::promise<std::thread::id> ran;
  auto where = ran.get_future();
  reactor.post([&] { ran.set_value(std::this_thread::get_id()); });
  return arrives(where) ? where.get() : std::thread::id();
}

// Broken: if an answer came before the caller slept, the caller would sleep forever.
TEST(reactor_wait, a_flag_that_is_set_already_is_not_waited_for) {
  epoll_reactor reactor;
  std::atomic<bool> done{true};
  reactor.wake(done);
  reactor.wait(done);
  reactor.wake(done);
  EXPECT_EQ(reactor.loop().waiting(), 0U);
}

// Broken: a leader that sleeps in the kernel would not learn of a flag that another thread set.
TEST(reactor_wait, a_sleeping_leader_is_woken_by_another_thread) {
  epoll_reactor reactor;
  for (int round = 0; round < 100; ++round) {
    std::atomic<bool> done{false};
    std::jthread other([&] {
      EXPECT_TRUE(eventually([&] { return caller_leads(reactor); }));
      finish(reactor, done);
    });
    reactor.wait(done);
  }
}

// Broken: a follower would sleep on although its answer came, or wake() would wake the wrong one.
TEST(reactor_wait, a_sleeping_follower_is_woken_alone) {
  epoll_reactor reactor;
  waiting_thread leader(reactor);
  ASSERT_TRUE(eventually([&] { return caller_leads(reactor); }));
  waiting_thread bystander(reactor);
  waiting_thread follower(reactor);
  ASSERT_TRUE(eventually([&] { return reactor.loop().waiting() == 3; }));
  finish(reactor, follower.done);
  follower.thread.join();
  EXPECT_EQ(reactor.loop().waiting(), 2U);
  EXPECT_EQ(leading_thread(reactor), leader.thread.get_id());
}

// Broken: two threads that wait for one thing would hang when the first of them runs the task that
// sets it.
TEST(reactor_wait, all_waiters_for_one_flag_are_woken) {
  epoll_reactor reactor;
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> done{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { reactor.wait(done); });
    ASSERT_TRUE(eventually([&] { return reactor.loop().waiting() == 4; }));
    reactor.post([&] { finish(reactor, done); });
  }
}

// Broken: of the callers whose answers came in one message, some would stay asleep.
TEST(reactor_wait, all_waiters_that_one_task_wakes_get_up) {
  epoll_reactor reactor;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<waiting_thread>> threads;
    for (int i = 0; i < 70; ++i) threads.push_back(std::make_unique<waiting_thread>(reactor));
    ASSERT_TRUE(eventually([&] { return reactor.loop().waiting() == 70; }));
    reactor.post([&] {
      for (const auto& each : threads) finish(reactor, each->done);
    });
    for (const auto& each : threads) each->thread.join();
    EXPECT_EQ(reactor.loop().waiting(), 0U);
  }
}

// Broken: when the leader leaves, nobody would drive the loop, or two at once, or the engine's
// thread, which costs everybody a hop.
TEST(reactor_wait, the_lead_goes_from_waiter_to_waiter_and_at_last_to_the_engine) {
  epoll_reactor reactor;
  std::vector<std::unique_ptr<waiting_thread>> threads;
  for (std::size_t i = 0; i < 5; ++i) {
    threads.push_back(std::make_unique<waiting_thread>(reactor));
    ASSERT_TRUE(eventually([&] { return reactor.loop().waiting() == i + 1; }));
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    EXPECT_EQ(leading_thread(reactor), threads[i]->thread.get_id());
    finish(reactor, threads[i]->done);
    threads[i]->thread.join();
  }
  EXPECT_TRUE(eventually([&] { return engine_leads(reactor); }));
}

// Broken: a caller that arrives while the engine's thread is at work would be served by that
// thread, with a hop, for as long as it waits.
TEST(reactor_wait, the_engine_hands_the_lead_to_a_caller_that_came_while_it_worked) {
  epoll_reactor reactor;
  std::promise<void> entered;
  std::promise<void> go_on;
  auto inside = entered.get_future();
  auto released = go_on.get_future();
  reactor.post([&] {
    entered.set_value();
    EXPECT_TRUE(arrives(released));
  });
  ASSERT_TRUE(arrives(inside));
  const waiting_thread caller(reactor);
  ASSERT_TRUE(eventually([&] { return reactor.loop().waiting() == 1; }));
  go_on.set_value();
  EXPECT_EQ(leading_thread(reactor), caller.thread.get_id());
}

// Broken: after a caller that waited long, nobody would watch the descriptors any more.
TEST(reactor_wait, the_engine_leads_again_after_a_caller_that_led_for_long) {
  epoll_reactor reactor;
  {
    const waiting_thread caller(reactor);
    ASSERT_TRUE(eventually([&] { return caller_leads(reactor); }));
    // Until the engine's thread has stopped polling, and relies on being notified.
    ASSERT_TRUE(eventually([&] {
      const std::uint64_t before = reactor.loop().wakeups();
      std::this_thread::sleep_for(10ms);
      return before == reactor.loop().wakeups();
    }));
  }
  EXPECT_TRUE(eventually([&] { return engine_leads(reactor); }));
}

// Broken: callers, followers, the engine and the threads that set the flags would miss each other in some
// order of events, and one would sleep forever (the test's time limit), or a thread sanitizer
// would object.
TEST(reactor_wait, sixteen_threads_wait_and_wake_each_other_in_every_way) {
  constexpr int threads = 16;
  constexpr int rounds = 300;
  epoll_reactor reactor;
  std::atomic<std::size_t> finished{0};
  const auto body = [&](unsigned seed) {
    std::minstd_rand random(seed);
    for (int round = 0; round < rounds; ++round) {
      std::atomic<bool> done{false};
      // The thread that sets the flag calls wake() with its address only: the flag may be gone by then.
      auto complete = [&reactor, &done] { finish(reactor, done); };
      switch (random() % 5) {
        case 0:
          reactor.post(complete);
          break;
        case 1:
          reactor.at(reactor.now() + std::chrono::microseconds(random() % 300), complete);
          break;
        case 2:
          reactor.notify(complete);
          break;
        case 3:
          reactor.notify([&reactor, complete] { reactor.post(complete); });
          break;
        default:
          complete();
          break;
      }
      reactor.wait(done);
      ASSERT_TRUE(done.load());
      finished.fetch_add(1);
    }
  };
  std::vector<std::jthread> all;
  for (unsigned i = 0; i < threads; ++i) all.emplace_back(body, i + 1);
  all.clear();
  EXPECT_EQ(finished.load(), std::size_t{threads} * rounds);
  EXPECT_EQ(reactor.loop().waiting(), 0U);
  EXPECT_TRUE(eventually([&] { return engine_leads(reactor); }));
}

// Broken: a lone thread would pay a hop to the engine's thread for its answers. On a loaded machine
// the engine may take over between two round trips, but not in most of them.
TEST(reactor_wait, a_lone_caller_reads_its_answers_itself) {
  epoll_reactor reactor;
  const socket_pair sockets;
  std::jthread echo([&] {
    while (true) {
      char letter = '\0';
      if (!eventually([&] { return (letter = sockets.hear_far()) != '\0'; }) || letter == 'q')
        return;
      sockets.say(letter);
    }
  });
  std::atomic<bool> done{false};
  int read_here = 0;
  const auto id = reactor.watch(sockets.near.get(), true, false,
                                [&, caller = std::this_thread::get_id()](spi::readiness) {
                                  if (sockets.hear() == '\0') return;
                                  read_here += std::this_thread::get_id() == caller ? 1 : 0;
                                  finish(reactor, done);
                                });
  constexpr int round_trips = 500;
  EXPECT_TRUE(eventually([&] {
    read_here = 0;
    for (int i = 0; i < round_trips; ++i) {
      done.store(false);
      sockets.answer('x');
      reactor.wait(done);
    }
    return read_here > round_trips / 2;
  }));
  sockets.answer('q');
  echo.join();
  reactor.unwatch(id);
}

// Broken: an idle process would use the processor, and keep a laptop awake.
TEST(reactor_wait, nothing_wakes_up_while_nothing_happens) {
  epoll_reactor reactor;
  // The engine looks once more after a change, late on a loaded machine: in the end it is quiet.
  const auto quiet = [&](auto state) {
    ASSERT_TRUE(eventually(state));
    EXPECT_TRUE(eventually([&] {
      const std::uint64_t before = reactor.loop().wakeups();
      std::this_thread::sleep_for(300ms);  // the thing itself: that nothing happens meanwhile
      return before == reactor.loop().wakeups();
    }));
  };
  reactor.at(reactor.now() + 1h, [] {});
  quiet([&] { return engine_leads(reactor); });
  const waiting_thread leader(reactor);
  const waiting_thread follower(reactor);
  quiet([&] { return caller_leads(reactor) && reactor.loop().waiting() == 2; });
}

// Broken: a task that takes a blocking lock would hang the client instead of being refused.
TEST(reactor_wait, knows_the_threads_that_must_not_block) {
  epoll_reactor reactor;
  EXPECT_FALSE(reactor.on_own_thread());
  std::promise<bool> engine;
  std::promise<bool> notifier;
  auto on_engine = engine.get_future();
  auto on_notifier = notifier.get_future();
  reactor.post([&] { engine.set_value(reactor.on_own_thread()); });
  reactor.notify([&] { notifier.set_value(reactor.on_own_thread()); });
  ASSERT_TRUE(arrives(on_engine) && arrives(on_notifier));
  EXPECT_TRUE(on_engine.get());
  EXPECT_TRUE(on_notifier.get());

  epoll_reactor other;
  std::atomic<bool> done{false};
  bool while_driving = false;
  bool of_the_other = true;
  run_while_driving(reactor, done, [&] {
    while_driving = reactor.on_own_thread();
    of_the_other = other.on_own_thread();
    finish(reactor, done);
  });
  EXPECT_TRUE(while_driving);
  EXPECT_FALSE(of_the_other);
  EXPECT_FALSE(reactor.on_own_thread());
}

// Broken: such a task would hang the client silently and forever.
TEST(reactor_wait_death, a_task_that_waits_for_its_own_reactor_aborts_and_says_why) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto wait_inside = [] {
    epoll_reactor reactor;
    std::atomic<bool> done{false};
    std::atomic<bool> never{false};
    reactor.post([&] { reactor.wait(never); });
    reactor.wait(done);
  };
  EXPECT_DEATH(wait_inside(), "waits for the event loop");
}

}  // namespace
}  // namespace holdfast::test
