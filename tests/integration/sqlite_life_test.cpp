// Who is alive and who is not: killed, stopped, forked and executed processes.
#include "integration/sqlite_harness.hpp"
#include "runtime/reactor.hpp"
#include "support/eventually.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>

namespace holdfast::test {
namespace {

// A process that takes the lock, reports it, and holds it until it is ended.
forked_process hold(const embedded_file& file, const telephone& line) {
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.fair_claim());
    line.say_back('h');
    for (;;) ::pause();
  });
  EXPECT_EQ(line.hear(), 'h');
  return holder;
}

// Not sooner: long enough that a waiter let in wrongly would be in.
constexpr auto a_while = 300ms;

TEST(sqlite_life, a_killed_holder_is_known_at_once) {
  // Broken: the next holder waits for a timeout that this store does not have.
  const embedded_file file;
  const telephone line;
  forked_process holder = hold(file, line);
  const embedded_client client(file.path());
  const auto claim = client.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  holder.kill();
  // Notified, not found by polling: nobody polls here. How soon is measured among processes.
  ASSERT_TRUE(wakeup->is_woken());
  EXPECT_TRUE(granted(client.attempt(claim, wakeup)));
}

TEST(sqlite_life, a_try_finds_the_lock_of_a_killed_holder_free) {
  // Broken: a try is refused as "busy" because of a dead process, forever.
  const embedded_file file;
  const telephone line;
  hold(file, line).kill();
  const embedded_client client(file.path());
  auto claim = client.claim();
  claim->queued = false;
  EXPECT_TRUE(granted(client.attempt(claim)));
}

TEST(sqlite_life, a_stopped_holder_keeps_its_lock) {
  // Broken: a paused process and another one work at the same time.
  const embedded_file file;
  const telephone line;
  forked_process holder = hold(file, line);
  holder.stop();
  const embedded_client client(file.path());
  const auto claim = client.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  EXPECT_FALSE(wakeup->is_woken(a_while));
  EXPECT_EQ(client.renew(claim).state, hold_state::waiting);
  holder.kill();
  ASSERT_TRUE(wakeup->is_woken());
  EXPECT_TRUE(granted(client.attempt(claim, wakeup)));
}

TEST(sqlite_life, a_killed_waiter_is_passed_over_by_the_release) {
  // Broken: the lock is handed to a dead process.
  const embedded_file file;
  const telephone line;
  const telephone first;
  forked_process holder([&] {
    const embedded_client client(file.path());
    const auto claim = client.fair_claim();
    client.acquire(claim);
    line.say_back('h');
    static_cast<void>(line.hear_back());
    static_cast<void>(client.leave(claim));
  });
  ASSERT_EQ(line.hear(), 'h');
  forked_process dead([&] {
    const embedded_client client(file.path());
    static_cast<void>(client.attempt(client.fair_claim()));
    first.say_back('q');
    for (;;) ::pause();
  });
  ASSERT_EQ(first.hear(), 'q');
  const embedded_client client(file.path());
  const auto claim = client.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  dead.kill();
  line.say('g');
  ASSERT_TRUE(wakeup->is_woken());
  client.acquire(claim, wakeup);
  EXPECT_EQ(holder.wait(), 0);
}

TEST(sqlite_life, the_last_of_several_readers_that_dies_lets_the_writer_in) {
  // Broken: a writer is let in too early, or watches only one of those it waits for.
  const embedded_file file;
  std::vector<telephone> lines(3);
  std::vector<forked_process> readers;
  for (auto& line : lines) {
    readers.emplace_back([&] {
      const embedded_client client(file.path());
      auto claim = client.claim();
      claim->mode = spi::mode::shared;
      client.acquire(claim);
      line.say_back('r');
      for (;;) ::pause();
    });
    ASSERT_EQ(line.hear(), 'r');
  }
  const embedded_client client(file.path());
  const auto claim = client.claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  readers[1].kill();
  ASSERT_TRUE(wakeup->is_woken());
  wakeup->listen();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  readers[0].kill();
  ASSERT_TRUE(wakeup->is_woken());
  wakeup->listen();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  readers[2].kill();
  ASSERT_TRUE(wakeup->is_woken());
  EXPECT_TRUE(granted(client.attempt(claim, wakeup)));
}

// Runs `part` as the first process of a pid namespace of its own, where it has pid 1. Ends with the
// process that called it.
void as_pid_one(const std::function<void()>& part) {
  const int flags = CLONE_NEWPID | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
  if (::unshare(flags) != 0) throw std::runtime_error("a pid namespace of our own");
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getpid() != 1) ::_exit(97);
    part();
    ::_exit(0);
  }
  for (;;) ::pause();
}

TEST(sqlite_life, a_pid_that_is_used_again_is_not_taken_for_its_former_owner) {
  // Broken: a dead holder is taken for alive because another process has its pid.
  const embedded_file file;
  const telephone first;
  const telephone second;
  const auto open_as_pid_one = [&](const telephone& line, bool takes) {
    return forked_process([&file, &line, takes] {
      as_pid_one([&] {
        const embedded_client client(file.path());
        if (takes) client.acquire(client.claim());
        line.say_back('r');
        for (;;) ::pause();
      });
    });
  };
  forked_process holder = open_as_pid_one(first, true);
  ASSERT_EQ(first.hear(), 'r');
  holder.kill();
  const forked_process stranger = open_as_pid_one(second, false);
  ASSERT_EQ(second.hear(), 'r');
  const embedded_client client(file.path());
  const auto claim = client.claim();
  client.acquire(claim);
  EXPECT_EQ(client.leave(claim).value(), departure::was_holder);
}

TEST(sqlite_life, a_program_started_by_the_holder_does_not_keep_its_lock) {
  // Broken: a surviving child of a killed holder keeps the lock.
  const embedded_file file;
  const telephone line;
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.claim());
    // A program that outlives us, started as most programs start others. Without our output, whose
    // reader would wait for it.
    const pid_t child = ::vfork();
    if (child == 0) {
      ::execlp("sh", "sh", "-c", "exec sleep 60 >/dev/null 2>&1", nullptr);
      ::_exit(127);
    }
    if (child < 0) throw std::runtime_error("vfork");
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  holder.kill();
  const embedded_client client(file.path());
  auto claim = client.claim();
  claim->queued = false;
  // Soon: vfork returns a moment before exec closes what is closed on exec.
  EXPECT_TRUE(eventually([&] { return granted(client.attempt(claim)); }));
}

TEST(sqlite_life, a_forked_child_of_the_holder_does_not_keep_its_lock) {
  // Broken: the same for a forked child that continues without exec.
  const embedded_file file;
  const telephone line;
  const telephone orphan;
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.claim());
    if (::fork() == 0) {
      orphan.say_back('o');
      static_cast<void>(orphan.hear_back());
      ::_exit(0);
    }
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  ASSERT_EQ(orphan.hear(), 'o');
  const embedded_client client(file.path());
  const auto claim = client.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  holder.kill();
  ASSERT_TRUE(wakeup->is_woken());
  EXPECT_TRUE(granted(client.attempt(claim, wakeup)));
  orphan.say('e');
}

TEST(sqlite_life, a_child_that_inherits_the_life_descriptor_keeps_the_lock_until_it_ends) {
  // Broken: `holdfast run` is killed and its command works on beside the next holder; or the end of
  // the command is noticed late.
  const embedded_file file;
  const telephone line;
  const telephone command;
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.claim());
    const int inherited = client.store().life_descriptor();
    if (inherited < 0) throw std::runtime_error("no descriptor");
    if (::fork() == 0) {
      command.say_back('c');
      static_cast<void>(command.hear_back());
      ::_exit(0);
    }
    ::close(inherited);
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  ASSERT_EQ(command.hear(), 'c');
  const embedded_client client(file.path());
  const auto claim = client.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  holder.kill();
  EXPECT_FALSE(wakeup->is_woken(a_while));
  ASSERT_TRUE(queued(client.attempt(claim, wakeup)));
  command.say('e');
  ASSERT_TRUE(wakeup->is_woken()) << "told, since nobody looks here";
  EXPECT_TRUE(granted(client.attempt(claim, wakeup)));
}

TEST(sqlite_life, many_short_processes_leave_a_short_log) {
  // Broken: the first to open the file reads the whole log, so `run` took longer the more often it
  // had run.
  const embedded_file file;
  for (int i = 0; i < 200; ++i) {
    const embedded_client client(file.path());
    const auto claim = client.claim();
    client.acquire(claim);
    ASSERT_TRUE(client.leave(claim));
  }
  constexpr std::uintmax_t frame = 1024 + 24;
  EXPECT_LT(std::filesystem::file_size(file.path() + "-wal"), 300 * frame);
}

TEST(sqlite_life, one_look_at_a_time_is_enough_for_a_client_that_cannot_be_reached) {
  // Broken: every time a waiter asks, one more timer begins that never ends.
  const embedded_file file;
  const embedded_client holds(file.path());
  const embedded_client waits(file.path());
  ASSERT_TRUE(granted(holds.attempt(holds.claim())));
  for (const auto& each : std::filesystem::directory_iterator(file.beside())) {
    if (each.is_socket()) std::filesystem::remove(each.path());
  }
  const auto waiter = waits.fair_claim();
  ASSERT_TRUE(queued(waits.attempt(waiter)));
  const auto& loop = dynamic_cast<runtime::epoll_reactor&>(waits.reactor()).loop();
  const std::uint64_t before = loop.wakeups();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(waits.renew(waiter).state, hold_state::waiting);
  const time_point end = clock::now() + 2s;
  EXPECT_TRUE(eventually([&] { return clock::now() > end; }));
  EXPECT_LT(loop.wakeups() - before, 100U);
}

}  // namespace
}  // namespace holdfast::test
