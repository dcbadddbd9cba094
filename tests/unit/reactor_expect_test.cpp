// A thread that waits alone for an answer sleeps in the read itself; nothing else suffers from it.
#include "reactor_harness.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/time.h>

namespace holdfast::test {
namespace {

// A peer that echoes what it receives, and whether on_ready was called before the answer arrived.
struct reactor_expect : testing::Test {
  epoll_reactor reactor;
  socket_pair sockets;
  std::atomic<bool> done{false};
  std::atomic<int> awaited{0};
  std::atomic<bool> fired{true};  // the timer that must not be overslept
  std::atomic<int> overslept{0};
  spi::reactor::watch_id id = 0;
  std::jthread echo;

  void SetUp() override {
    const timeval limit{0, 1'000};
    ASSERT_EQ(::setsockopt(sockets.near.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    ASSERT_EQ(::fcntl(sockets.near.get(), F_SETFL, 0), 0);  // a read sleeps
    id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness what) {
      awaited += what.awaited ? 1 : 0;
      overslept += what.awaited && !fired.load() ? 1 : 0;
      if (sockets.hear() != '\0') finish(reactor, done);
    });
    echo = std::jthread([&] {
      while (true) {
        char letter = '\0';
        if (!spin_until([&] { return (letter = sockets.hear_far()) != '\0'; }) || letter == 'q')
          return;
        sockets.say(letter);
      }
    });
  }
  void TearDown() override {
    sockets.answer('q');
    echo.join();
    reactor.unwatch(id);
  }
  void round_trip() {
    done.store(false);
    sockets.answer('x');
    reactor.expect(id);
    reactor.wait(done);
  }
};

TEST_F(reactor_expect, a_lone_caller_sleeps_in_the_read_of_its_answer) {
  // Broken: every answer would cost one more system call.
  EXPECT_TRUE(spin_until([&] {
    round_trip();
    return awaited.load() > 100;
  }));
}

TEST_F(reactor_expect, every_now_and_then_all_descriptors_are_looked_at) {
  // Broken: a thread that asks all the time would keep others' pushed grants from them.
  duration asking{0};
  int looks = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int before = awaited.load();
    const time_point start = clock::now();
    round_trip();
    const duration took = clock::now() - start;
    if (took < 1ms) asking += took;  // a longer one was interrupted
    if (awaited.load() == before) ++looks;
  }
  EXPECT_GE((looks + 1) * duration(4ms), asking);
}

TEST_F(reactor_expect, a_timer_that_is_due_soon_is_not_slept_over) {
  // Broken: the loss of a lease would be reported late.
  EXPECT_TRUE(spin_until([&] {
    round_trip();
    return awaited.load() > 10;
  }));
  fired.store(false);
  reactor.at(clock::now() + 15ms, [&] { fired.store(true); });
  EXPECT_TRUE(spin_until([&] {
    round_trip();
    return fired.load();
  }));
  EXPECT_EQ(overslept.load(), 0);
}

TEST_F(reactor_expect, a_hint_that_was_wrong_costs_a_moment_only) {
  // Broken: a thread would sleep for an answer that never comes, while its lock is granted elsewhere.
  for (int i = 0; i < 20; ++i) {
    round_trip();
    done.store(false);
    reactor.expect(id);
    std::jthread other([&] { finish(reactor, done); });
    reactor.wait(done);
  }
}

TEST_F(reactor_expect, is_for_the_next_wait_only) {
  // Broken: a wait for something else would begin with a sleep for nothing.
  const auto wait_for_nothing_of_it = [&] {
    const int before = awaited.load();
    done.store(false);
    std::jthread other([&] {
      if (spin_until([&] { return caller_leads(reactor); })) finish(reactor, done);
    });
    reactor.wait(done);
    EXPECT_EQ(awaited.load(), before);
  };
  for (int i = 0; i < 20; ++i) {
    round_trip();
    reactor.expect(id);
    reactor.wait(done);  // is set
    wait_for_nothing_of_it();
  }

  std::atomic<bool> others{false};
  std::jthread leader([&] { reactor.wait(others); });
  EXPECT_TRUE(spin_until([&] { return caller_leads(reactor); }));
  done.store(false);
  std::jthread third([&] {
    if (spin_until([&] { return reactor.loop().waiting() == 2; })) finish(reactor, done);
  });
  reactor.expect(id);
  reactor.wait(done);  // while another leads
  finish(reactor, others);
  leader.join();
  wait_for_nothing_of_it();
}

}  // namespace
}  // namespace holdfast::test
