// After fork(): the child's reactor is inert, and the parent's is unaffected.
#include "reactor_harness.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/random.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>

namespace holdfast::test {
namespace {

// Exit codes of the children.
constexpr int inert = 0;
constexpr int wrong = 1;

// A child that hangs is killed after the limit and counts as wrong.
int exit_code(pid_t child) {
  int status = 0;
  if (child <= 0) return wrong;  // there is none; kill() would take that for "everybody"
  if (!eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; })) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return wrong;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : wrong;
}

// Broken: a client could not tell that it is a copy in another process.
TEST(fork_guard, the_child_knows_that_it_is_one) {
  const runtime::fork_guard guard;
  const std::uint64_t before = runtime::fork_generation();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool knows = guard.forked() && runtime::fork_generation() == before + 1;
    const runtime::fork_guard own;
    ::_exit(knows && !own.forked() ? inert : wrong);
  }
  EXPECT_EQ(exit_code(child), inert);
  EXPECT_FALSE(guard.forked());
}

// Broken: a child that no fork handler ran for releases the parent's locks.
TEST(fork_guard, a_child_made_without_fork_handlers_knows_it_too) {
  const runtime::fork_guard guard;
  for (const bool raw : {false, true}) {
    const auto child =
        raw ? static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : ::_Fork();
    if (child == 0) {
      const bool knows = guard.forked();
      const runtime::fork_guard own;
      ::_exit(knows && !own.forked() ? inert : wrong);
    }
    EXPECT_EQ(exit_code(child), inert) << (raw ? "clone" : "_Fork");
  }
  EXPECT_FALSE(guard.forked());
}

// Broken: parent and child would make the same claim ids: each could unlock the other's locks.
TEST(random_source, parent_and_child_draw_different_numbers) {
  EXPECT_NE(runtime::random_number(), runtime::random_number());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  std::array<std::uint64_t, 4> numbers{runtime::random_number(), runtime::random_number(),
                                       runtime::random_number(), runtime::random_number()};
  if (child == 0) {
    const bool sent = ::write(ends[1], numbers.data(), sizeof numbers) == sizeof numbers;
    ::_exit(sent ? inert : wrong);
  }
  std::array<std::uint64_t, 4> other{};
  EXPECT_EQ(::read(ends[0], other.data(), sizeof other), static_cast<ssize_t>(sizeof other));
  EXPECT_EQ(exit_code(child), inert);
  for (const std::uint64_t number : numbers) {
    for (const std::uint64_t theirs : other) EXPECT_NE(number, theirs);
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

// Broken: a program that forks would hang in the child's destructors, or the child would remove the
// parent's sockets from the epoll instance that both share, and the parent would receive nothing
// more.
TEST(reactor_fork, the_child_is_inert_and_the_parent_goes_on) {
  std::optional<epoll_reactor> reactor(std::in_place);
  const socket_pair sockets;
  std::promise<char> heard;
  auto letter = heard.get_future();
  const auto id = reactor->watch(sockets.near.get(), true, false, [&](spi::readiness) {
    if (const char read = sockets.hear(); read != '\0') heard.set_value(read);
  });
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<bool> never{false};
    reactor->post([] { ::_exit(wrong); });
    reactor->notify([] { ::_exit(wrong); });
    reactor->cancel(reactor->at(reactor->now(), [] { ::_exit(wrong); }));
    reactor->rewatch(id, false, false);
    reactor->unwatch(id);
    reactor->wake(never);
    reactor->wait(never);
    const bool refused =
        reactor->watch(sockets.near.get(), true, false, [](spi::readiness) {}) == 0;
    (void)reactor->random();
    reactor.reset();
    ::_exit(refused ? inert : wrong);
  }
  EXPECT_EQ(exit_code(child), inert);
  sockets.say('x');
  ASSERT_TRUE(arrives(letter));
  EXPECT_EQ(letter.get(), 'x');
  reactor->unwatch(id);
}

// Broken: the child would hang at a lock that another thread of the parent held when it forked.
TEST(reactor_fork, the_child_is_inert_also_while_other_threads_are_at_work) {
  std::optional<epoll_reactor> reactor(std::in_place);
  std::atomic<bool> stop{false};
  std::jthread worker([&] {
    while (!stop.load()) {
      std::atomic<bool> done{false};
      reactor->cancel(reactor->at(reactor->now() + 1s, [] {}));
      reactor->notify([&] { reactor->post([&] { finish(*reactor, done); }); });
      reactor->wait(done);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<bool> never{false};
      reactor->post([] {});
      reactor->wait(never);
      reactor.reset();
      ::_exit(inert);
    }
    ASSERT_EQ(exit_code(child), inert);
  }
  stop.store(true);
}

// Broken: a callback that forks, and whose child returns from it, would hang or run the parent's
// work twice.
TEST(reactor_fork, a_child_made_in_a_callback_comes_out_of_wait) {
  epoll_reactor reactor;
  std::atomic<bool> done{false};
  pid_t child = -1;
  std::jthread other([&] {
    if (!eventually([&] { return caller_leads(reactor); })) return;
    reactor.post([&] {
      child = ::fork();
      if (child != 0) finish(reactor, done);
    });
  });
  reactor.wait(done);
  if (child == 0) ::_exit(done.load() ? wrong : inert);
  EXPECT_EQ(exit_code(child), inert);
}

}  // namespace
}  // namespace holdfast::test
