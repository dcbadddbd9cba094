// Watched descriptors: readiness, and what unwatch() promises.
#include "reactor_harness.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

namespace holdfast::test {
namespace {

// What the first call of a watch reports.
spi::readiness first_report(epoll_reactor& reactor, int fd, bool readable, bool writable) {
  std::atomic<bool> done{false};
  spi::readiness seen;
  std::promise<spi::reactor::watch_id> made;
  auto id = made.get_future();
  // Requested by a change, so that both ways of requesting are covered.
  const auto watch = reactor.watch(fd, false, false, [&](spi::readiness readiness) {
    seen = readiness;
    reactor.unwatch(id.get());
    finish(reactor, done);
  });
  made.set_value(watch);
  reactor.rewatch(watch, readable, writable);
  reactor.wait(done);
  reactor.rewatch(watch, true, true);  // ended: nothing happens
  return seen;
}

// Broken: an answer would not be read, a full socket never written to again, or a dead connection
// not noticed.
TEST(reactor_watch, tells_readable_writable_and_hung_up_as_asked_for) {
  epoll_reactor reactor;
  socket_pair sockets;
  sockets.say('x');
  const spi::readiness reading = first_report(reactor, sockets.near.get(), true, false);
  EXPECT_TRUE(reading.readable);
  EXPECT_FALSE(reading.writable || reading.hung_up);
  const spi::readiness writing = first_report(reactor, sockets.near.get(), false, true);
  EXPECT_TRUE(writing.writable);
  EXPECT_FALSE(writing.readable || writing.hung_up);
  sockets.far.close();
  const spi::readiness neither = first_report(reactor, sockets.near.get(), false, false);
  EXPECT_TRUE(neither.hung_up);
}

// Broken: a pushed grant would wait in the socket of a process in which nobody waits.
TEST(reactor_watch, the_engines_thread_dispatches_while_nobody_drives) {
  epoll_reactor reactor;
  const socket_pair sockets;
  for (int round = 0; round < 50; ++round) {
    std::promise<char> heard;
    auto letter = heard.get_future();
    const auto id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness) {
      if (const char read = sockets.hear(); read != '\0') heard.set_value(read);
    });
    if (round % 2 == 0) {  // also just after a caller has driven
      std::atomic<bool> done{false};
      reactor.post([&] { finish(reactor, done); });
      reactor.wait(done);
    }
    sockets.say('p');
    ASSERT_TRUE(arrives(letter));
    EXPECT_EQ(letter.get(), 'p');
    reactor.unwatch(id);
  }
}

// Broken: a connection would be freed during its own callback.
TEST(reactor_watch, unwatch_waits_for_a_callback_that_runs) {
  epoll_reactor reactor;
  const socket_pair sockets;
  std::promise<void> entered;
  std::promise<void> go_on;
  auto inside = entered.get_future();
  auto released = go_on.get_future();
  std::atomic<bool> returned{false};
  std::atomic<bool> unwatched{false};
  bool in_order = false;
  const auto id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness) {
    entered.set_value();
    EXPECT_TRUE(arrives(released));
    EXPECT_FALSE(unwatched.load());
    returned.store(true);
  });
  sockets.say('x');
  ASSERT_TRUE(arrives(inside));
  std::jthread ender([&] {
    reactor.unwatch(id);
    in_order = returned.load();
    unwatched.store(true);
  });
  // unwatch() has begun when the table is empty; then let the callback end.
  EXPECT_TRUE(eventually([&] { return reactor.loop().watching() == 0; }));
  go_on.set_value();
  ender.join();
  EXPECT_TRUE(in_order);
}

// Broken: a connection could not end itself when it reads a hang-up, or would destroy its callback
// while that runs.
TEST(reactor_watch, a_callback_may_end_its_own_watch) {
  epoll_reactor reactor;
  const socket_pair sockets;
  std::atomic<bool> done{false};
  int calls = 0;
  spi::reactor::watch_id id = 0;
  const auto witness = std::make_shared<int>(7);
  std::weak_ptr<int> alive = witness;
  std::atomic<bool> known{false};
  reactor.post([&, kept = witness]() mutable {
    id =
        reactor.watch(sockets.near.get(), true, false, [&, kept = std::move(kept)](spi::readiness) {
          ++calls;
          reactor.unwatch(id);
          EXPECT_EQ(*kept, 7);
          reactor.at(reactor.now() + 5ms, [&] { finish(reactor, done); });
        });
    finish(reactor, known);
  });
  reactor.wait(known);
  sockets.say('x');
  reactor.wait(done);
  EXPECT_EQ(calls, 1);  // level-triggered, and nothing was read: it would have been called again
  EXPECT_EQ(alive.use_count(), 1);
}

// Broken: an event that was reported for a closed connection would go to the new one that got the
// same number.
TEST(reactor_watch, a_reported_event_of_an_ended_watch_does_not_reach_its_successor) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  socket_pair first;
  socket_pair second;
  first.say('x');
  second.say('x');
  int stale = 0;
  int turns = 0;
  std::vector<spi::reactor::watch_id> ids(2);
  socket_pair fresh;
  // Both are ready in one report; whichever is called first ends the other and reuses its number.
  const auto on_ready = [&](std::size_t other, runtime::descriptor& its) {
    if (++turns > 1) return;
    reactor.unwatch(ids[other]);
    const int number = its.get();
    ASSERT_EQ(::dup3(fresh.near.get(), number, O_CLOEXEC), number);
    ids[other] = reactor.watch(number, true, false, [&](spi::readiness) { ++stale; });
    reactor.unwatch(ids[1 - other]);
    reactor.at(reactor.now() + 5ms, [&] { finish(reactor, done); });
  };
  reactor.post([&] {
    ids[0] = reactor.watch(first.near.get(), true, false,
                           [&](spi::readiness) { on_ready(1, second.near); });
    ids[1] = reactor.watch(second.near.get(), true, false,
                           [&](spi::readiness) { on_ready(0, first.near); });
  });
  reactor.wait(done);
  EXPECT_EQ(turns, 1);
  EXPECT_EQ(stale, 0);
  for (const auto id : ids) reactor.unwatch(id);
}

// Broken: two threads would read one connection at once, when the lead moves between callers and
// the engine while the descriptor stays ready.
TEST(reactor_watch, a_callback_never_runs_twice_at_once_while_the_lead_moves) {
  epoll_reactor reactor;
  const socket_pair sockets;
  std::atomic<int> inside{0};
  std::atomic<int> calls{0};
  int unguarded = 0;  // a thread sanitizer would see two at once here
  const auto id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness) {
    EXPECT_EQ(inside.fetch_add(1), 0);
    ++unguarded;
    calls.fetch_add(1);
    inside.fetch_sub(1);
  });
  sockets.say('x');  // never read: always ready
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        std::atomic<bool> done{false};
        reactor.post([&] { finish(reactor, done); });
        reactor.wait(done);
      }
    });
  }
  callers.clear();
  ASSERT_TRUE(eventually([&] { return calls.load() > 0; }));
  reactor.unwatch(id);
  const int after = calls.load();
  std::atomic<bool> done{false};
  reactor.at(reactor.now() + 5ms, [&] { finish(reactor, done); });
  reactor.wait(done);
  EXPECT_EQ(calls.load(), after);
  EXPECT_EQ(unguarded, after);
}

// Broken: watching and ending watches from many threads would race with the leader.
TEST(reactor_watch, watches_come_and_go_on_many_threads_while_others_drive) {
  epoll_reactor reactor;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const socket_pair sockets;
        std::atomic<bool> done{false};
        const auto id = reactor.watch(sockets.near.get(), true, false, [&](spi::readiness) {
          if (sockets.hear() == 'x') finish(reactor, done);
        });
        sockets.say('x');
        reactor.wait(done);
        reactor.unwatch(id);
      }
    });
  }
}

// Broken: a mistake of the caller would be silent.
TEST(reactor_watch, what_cannot_be_watched_is_refused) {
  epoll_reactor reactor;
  const runtime::descriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THROW(reactor.watch(file.get(), true, false, [](spi::readiness) {}), std::system_error);
  EXPECT_THROW(reactor.watch(-1, true, false, [](spi::readiness) {}), std::system_error);
  reactor.unwatch(12345);
}

}  // namespace
}  // namespace holdfast::test
