// The end of a reactor, on every kind of thread and in a forked child; and how its threads behave.
#include "reactor_harness.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <utility>

namespace holdfast::test {
namespace {

// Gives the reactor to a task, as its last owner, and waits until the task has destroyed it.
template <class Run>
void end_inside_a_task(Run run) {
  auto reactor = std::make_shared<epoll_reactor>();
  std::promise<void> only_owner;
  std::promise<void> ended;
  auto alone = only_owner.get_future();
  auto end = ended.get_future();
  run(*reactor, [&, kept = reactor]() mutable {
    EXPECT_TRUE(arrives(alone));
    EXPECT_EQ(kept.use_count(), 1);
    kept.reset();
    ended.set_value();
  });
  reactor.reset();
  only_owner.set_value();
  ASSERT_TRUE(arrives(end));
}

// Broken: the last client handle, dropped in a callback, would join its own thread: dead-lock.
TEST(reactor_end, may_come_on_any_of_its_own_threads) {
  for (int round = 0; round < 20; ++round) {
    end_inside_a_task([](epoll_reactor& reactor, auto work) { reactor.post(std::move(work)); });
    end_inside_a_task([](epoll_reactor& reactor, auto work) { reactor.notify(std::move(work)); });
  }
}

// Broken: the same, if the callback runs on the thread of a caller that drives the reactor.
TEST(reactor_end, may_come_from_a_task_that_a_driving_caller_runs) {
  for (int round = 0; round < 20; ++round) {
    auto reactor = std::make_shared<epoll_reactor>();
    epoll_reactor& used = *reactor;
    std::atomic<bool> never{false};
    std::promise<void> only_owner;
    auto alone = only_owner.get_future();
    std::thread::id ended_on;
    std::jthread other([&, kept = reactor]() mutable {
      EXPECT_TRUE(eventually([&] { return caller_leads(*kept); }));
      kept->post([&] {
        EXPECT_TRUE(arrives(alone));
        ended_on = std::this_thread::get_id();
        reactor.reset();
      });
      kept.reset();
      only_owner.set_value();
    });
    used.wait(never);
    EXPECT_EQ(reactor, nullptr);
    EXPECT_EQ(ended_on, std::this_thread::get_id());
  }
}

// Broken: "your lease is lost" would be dropped because the client ends.
TEST(reactor_end, notifications_given_before_it_are_run) {
  std::atomic<int> ran{0};
  {
    epoll_reactor reactor;
    for (int i = 0; i < 1'000; ++i) reactor.notify([&] { ran.fetch_add(1); });
  }
  EXPECT_EQ(ran.load(), 1'000);

  // Even if the end comes from the first of them, and the rest is queued behind it.
  std::promise<void> last;
  auto finished = last.get_future();
  end_inside_a_task([&](epoll_reactor& reactor, auto work) {
    reactor.notify(std::move(work));
    for (int i = 0; i < 100; ++i) reactor.notify([&] { ran.fetch_add(1); });
    reactor.notify([&] { last.set_value(); });
  });
  ASSERT_TRUE(arrives(finished));
  EXPECT_EQ(ran.load(), 1'100);
}

// Broken: what a task holds would leak with the reactor.
TEST(reactor_end, what_was_not_run_is_destroyed) {
  const auto witness = std::make_shared<int>(1);
  {
    epoll_reactor reactor;
    const socket_pair sockets;
    reactor.at(reactor.now() + 1h, [kept = witness] {});
    reactor.watch(sockets.near.get(), true, false, [kept = witness](spi::readiness) {});
  }
  EXPECT_EQ(witness.use_count(), 1);
}

// Broken: a burst of notifications beyond the limit would lose some, or block the engine's thread.
TEST(reactor_notify, beyond_its_limit_it_lags_and_loses_nothing) {
  constexpr std::size_t burst = runtime::notifier::queue_limit + 1'000;
  epoll_reactor reactor;
  std::promise<void> go_on;
  std::promise<void> all;
  auto released = go_on.get_future();
  auto finished = all.get_future();
  std::size_t ran = 0;
  reactor.notify([&] { EXPECT_TRUE(arrives(released)); });
  for (std::size_t i = 0; i < burst; ++i) {
    reactor.notify([&] {
      if (++ran == burst) all.set_value();
    });
  }
  EXPECT_TRUE(reactor.callbacks().lagging());
  go_on.set_value();
  ASSERT_TRUE(arrives(finished));
  EXPECT_EQ(ran, burst);
  EXPECT_FALSE(reactor.callbacks().lagging());
}

// Broken: a user's exception would end the program.
TEST(reactor_notify, what_a_callback_throws_is_swallowed_and_counted) {
  epoll_reactor reactor;
  std::promise<void> after;
  auto next = after.get_future();
  reactor.notify([] { throw std::runtime_error("user code"); });
  reactor.notify([&] { after.set_value(); });
  ASSERT_TRUE(arrives(next));
  EXPECT_EQ(reactor.callbacks().swallowed(), 1U);
}

// Broken: a program's signal handler would run on a thread it does not know, or interrupt it.
TEST(reactor_threads, take_no_signals) {
  epoll_reactor reactor;
  const auto mask_of = [](auto run) {
    std::promise<sigset_t> found;
    auto mask = found.get_future();
    run([&] {
      sigset_t set;
      ::pthread_sigmask(SIG_BLOCK, nullptr, &set);
      found.set_value(set);
    });
    return mask.get();
  };
  for (const sigset_t& mask : {mask_of([&](auto work) { reactor.post(work); }),
                               mask_of([&](auto work) { reactor.notify(work); })}) {
    for (const int signal : {SIGTERM, SIGINT, SIGPIPE, SIGALRM, SIGCHLD, SIGUSR1}) {
      EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
    }
  }
  sigset_t own;
  ::pthread_sigmask(SIG_BLOCK, nullptr, &own);
  EXPECT_EQ(sigismember(&own, SIGTERM), 0);
}

std::set<int> open_descriptors() {
  std::set<int> found;
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder)) {
    const int number = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && number != ::dirfd(folder)) found.insert(number);
  }
  ::closedir(folder);
  return found;
}

// Broken: programs that the user starts would inherit our descriptors; or each client would leak
// some.
TEST(reactor_threads, descriptors_are_closed_on_exec_and_at_the_end) {
  const std::set<int> before = open_descriptors();
  {
    epoll_reactor reactor;
    const std::set<int> during = open_descriptors();
    EXPECT_GT(during.size(), before.size());
    for (const int number : during) {
      if (before.contains(number)) continue;
      EXPECT_NE(::fcntl(number, F_GETFD) & FD_CLOEXEC, 0) << number;
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace holdfast::test
