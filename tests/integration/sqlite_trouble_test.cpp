// What happens to the file and to the machine: reboot, other clocks, deletion, replacement, foreign
// programs, a process that is stopped at the worst moment.
#include "integration/sqlite_harness.hpp"
#include "support/eventually.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <holdfast/holdfast.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <stop_token>
#include <utility>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

sqlite::open_options at(const embedded_file& file, const std::string& boot,
                        std::uint64_t time_namespace = 1) {
  return {.path = file.path(), .here = sqlite::host{boot, time_namespace}};
}

TEST(sqlite_reboot, frees_locks_keeps_latches_and_raises_fences) {
  // Broken: after a power cut a fence decreases, or a lock is held by nobody forever.
  const embedded_file file;
  const telephone line;
  std::uint64_t before = 0;
  {
    const embedded_client client(at(file, "first boot"));
    const auto claim = client.claim();
    before = fence(client.attempt(claim));
    static_cast<void>(client.leave(claim));
    static_cast<void>(client.set_latch("start", 3, client.claim()->id));
  }
  forked_process holder([&] {
    const embedded_client client(at(file, "first boot"));
    client.acquire(client.claim());
    auto blocked = client.claim("blocked");
    blocked->lock_delay = 24h;
    client.acquire(blocked);
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  holder.kill();
  const embedded_client client(at(file, "second boot"));
  auto claim = client.claim();
  claim->queued = false;
  const auto taken = client.attempt(claim);
  ASSERT_TRUE(granted(taken));
  EXPECT_GT(fence(taken), before + 59'000'000);  // a minute, should the clock have lost that
  EXPECT_EQ(client.read_latch("start")->count, 3U);
  auto blocked = client.claim("blocked");
  blocked->queued = false;
  EXPECT_FALSE(granted(client.attempt(blocked))) << "its holder ended abnormally";
}

TEST(sqlite_reboot, restarts_a_lock_delay_that_was_running) {
  // Broken: a machine that crashes twice lets in a claim that the delay should keep out; or a delay
  // that is long over blocks the lock at every boot.
  const embedded_file file;
  const telephone line;
  forked_process holder([&] {
    const embedded_client client(at(file, "first boot"));
    for (const auto& [name, delay] : {std::pair{"long", duration(24h)}, {"short", duration(1ms)}}) {
      auto claim = client.claim(name);
      claim->lock_delay = delay;
      client.acquire(claim);
    }
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  holder.kill();
  const auto tried = [](const embedded_client& client, const std::string& name) {
    auto claim = client.claim(name);
    claim->queued = false;
    const bool taken = granted(client.attempt(claim));
    if (taken) static_cast<void>(client.leave(claim));
    return taken;
  };
  {
    const embedded_client client(at(file, "first boot"));
    EXPECT_FALSE(tried(client, "long"));
    const auto over = client.claim("short");
    client.acquire(over);
    static_cast<void>(client.leave(over));
  }
  for (const char* boot : {"second boot", "third boot"}) {
    const embedded_client client(at(file, boot));
    EXPECT_FALSE(tried(client, "long")) << boot;
    EXPECT_GT(client.inspect("long").blocked_for.value_or(duration{0}), 23h) << boot;
    EXPECT_TRUE(tried(client, "short")) << boot;
  }
}

TEST(sqlite_reboot, is_not_trusted_while_an_earlier_client_lives) {
  // Broken: two machines on one file declare each other's holders dead.
  const embedded_file file;
  const embedded_client client(at(file, "one machine"));
  const auto claim = client.claim();
  ASSERT_TRUE(granted(client.attempt(claim)));
  const error refused = opening(at(file, "another machine"));
  EXPECT_EQ(refused, errc::unsupported);
  EXPECT_NE(refused.detail.find("another machine"), std::string::npos) << refused.detail;
  EXPECT_EQ(client.renew(claim).state, hold_state::renewed);
}

TEST(sqlite_time_namespace, of_another_live_client_is_refused) {
  // Broken: times of two clocks are compared, and a lease ends early or never.
  const embedded_file file;
  {
    const embedded_client client(at(file, "boot", 1));
    const error refused = opening(at(file, "boot", 2));
    EXPECT_EQ(refused, errc::unsupported);
    EXPECT_NE(refused.detail.find("time namespace"), std::string::npos) << refused.detail;
  }
  const embedded_client later(at(file, "boot", 2));
}

TEST(sqlite_time_namespace, of_the_kernel_is_seen) {
  // Broken: the check compares something other than the namespace.
  const embedded_file file;
  const embedded_client client(file.path());
  forked_process other([&] {
    if (::unshare(CLONE_NEWTIME) != 0) return;  // not allowed here: the test above stands alone
    forked_process inside([&] {
      if (opening(file.path()) != errc::unsupported) throw std::runtime_error("opened");
    });
    if (inside.wait() != 0) throw std::runtime_error("not refused");
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST(sqlite_file, deleted_while_in_use_is_said_and_ends_all_holds) {
  // Broken: two groups of processes, each with its own file under one name, both hold valid locks.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto claim = client.claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(claim, wakeup)));
  fs::remove(file.path());
  const auto answer = client.attempt(client.claim("other"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), errc::unavailable);
  EXPECT_NE(answer.error().detail.find("deleted"), std::string::npos) << answer.error().detail;
  EXPECT_TRUE(wakeup->is_gone());
  EXPECT_EQ(client.leave(claim).value(), departure::gone);
}

TEST(sqlite_file, deleted_while_in_use_is_said_by_verbs_that_only_read) {
  // Broken: `show` and `ls` describe a file that nobody else can see.
  const embedded_file file;
  const embedded_client client(file.path());
  ASSERT_TRUE(granted(client.attempt(client.claim())));
  fs::remove(file.path());
  const auto latch = client.read_latch("doors");
  ASSERT_FALSE(latch);
  EXPECT_EQ(latch.error(), errc::unavailable);
  EXPECT_ANY_THROW(client.inspect());
  EXPECT_ANY_THROW(client.list());
}

TEST(sqlite_file, that_was_away_for_a_while_is_not_used_by_who_noticed) {
  // Broken: such a client is granted locks, and its releases are not written: others wait until it ends.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(client.claim(), wakeup)));
  const fs::path elsewhere = file.folder() / "elsewhere";
  fs::rename(file.path(), elsewhere);
  ASSERT_TRUE(wakeup->is_gone(10s));
  fs::rename(elsewhere, file.path());
  const auto asked = client.claim("other");
  const auto answer = client.attempt(asked);
  EXPECT_FALSE(granted(answer));
  client.leave(asked).value();
  const embedded_client next(file.path());
  EXPECT_TRUE(granted(next.attempt(next.claim("other"))));
}

TEST(sqlite_file, whose_folder_was_deleted_is_not_used_by_who_noticed) {
  // Broken: as above.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(client.claim(), wakeup)));
  fs::remove_all(file.beside());
  ASSERT_TRUE(wakeup->is_gone(10s));
  const auto answer = client.attempt(client.claim("other"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), errc::unavailable);
}

TEST(sqlite_file, replaced_while_in_use_is_noticed_without_being_used) {
  // Broken: a holder that does nothing never learns that its lock is gone.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(client.claim(), wakeup)));
  const fs::path other = file.folder() / "other";
  std::ofstream(other).put('x');
  fs::rename(other, file.path());
  EXPECT_TRUE(wakeup->is_gone(10s));
  EXPECT_NE(wakeup->loss()->detail.find("replaced"), std::string::npos);
}

TEST(sqlite_file, whose_folder_was_deleted_lets_nobody_in_beside_a_live_holder) {
  // Broken: clearing away "old" files beside the database causes two holders.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(client.attempt(client.claim(), wakeup)));
  fs::remove_all(file.beside());
  const embedded_client other(file.path());
  auto claim = other.claim();
  claim->queued = false;
  EXPECT_FALSE(granted(other.attempt(claim)));
  EXPECT_TRUE(wakeup->is_gone(10s)) << "and it learns that it cannot go on";
}

TEST(sqlite_foreigner, with_a_write_transaction_bounds_what_waits_for_it) {
  // Broken: a program that has the file locked hangs every user of locks.
  const embedded_file file;
  static_cast<void>(embedded_client(file.path()).probe());
  const telephone line;
  forked_process foreigner([&] {
    sqlite3* other = nullptr;
    sqlite3_open(file.path().c_str(), &other);
    if (sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error("begin");
    }
    line.say_back('b');
    static_cast<void>(line.hear_back());
    sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(other);
  });
  ASSERT_EQ(line.hear(), 'b');
  // Opened while it is locked, which needs a transaction too.
  sqlite::open_options hasty{.path = file.path()};
  hasty.deadline = 200ms;
  EXPECT_EQ(opening(hasty), errc::unavailable);
  line.say('c');
  EXPECT_EQ(foreigner.wait(), 0);
  const embedded_client client(file.path());
  EXPECT_TRUE(granted(client.attempt(client.claim())));
}

TEST(sqlite_foreigner, that_keeps_disappearing_costs_nobody_a_lock) {
  // Broken: "database is locked" because of a mere backup or a look with the shell.
  const embedded_file file;
  const telephone line;
  static_cast<void>(embedded_client(file.path()).probe());
  forked_process foreigner([&] {
    sqlite3* other = nullptr;
    sqlite3_open(file.path().c_str(), &other);
    sqlite3_busy_timeout(other, 60'000);
    line.say_back('b');
    for (;;) {
      sqlite3_exec(other, "BEGIN IMMEDIATE; UPDATE meta SET floor = floor; COMMIT", nullptr,
                   nullptr, nullptr);
    }
  });
  ASSERT_EQ(line.hear(), 'b');
  const embedded_client client(file.path());
  for (int i = 0; i < 200; ++i) {
    const auto claim = client.claim();
    ASSERT_TRUE(granted(client.attempt(claim)));
    ASSERT_EQ(client.leave(claim).value(), departure::was_holder);
  }
}

TEST(sqlite_writer_lock, with_a_stopped_process_inside_bounds_what_waits_for_it) {
  // Broken: Ctrl-Z in one program hangs all others forever; or a release that could not be made
  // is forgotten, and the lock stays held by a process that does not want it.
  const embedded_file file;
  const telephone line;
  static_cast<void>(embedded_client(file.path()).probe());
  forked_process inside([&] {
    const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
    static_cast<void>(line.hear_back());
    ::flock(writer_lock, LOCK_EX);
    line.say_back('i');
    for (;;) ::pause();
  });
  const embedded_client client(file.path());
  const embedded_client other(file.path());
  const auto held = client.claim();
  ASSERT_TRUE(granted(client.attempt(held)));
  line.say('g');
  ASSERT_EQ(line.hear(), 'i');
  inside.stop();
  const auto begun = clock::now();
  EXPECT_EQ(client.attempt(client.claim("other"), std::make_shared<noting_wakeup>(), 200ms).error(),
            errc::unavailable);
  EXPECT_EQ(client.leave(held, 200ms).error(), errc::unavailable);
  EXPECT_EQ(client.leave(held, 200ms).error(), errc::unavailable);
  EXPECT_LT(clock::now() - begun, 10s);
  inside.kill();
  // The test does not release again: the store does.
  const auto next = other.claim();
  other.acquire(next);
  EXPECT_EQ(client.leave(held).value(), departure::gone);
}

// The signals that each thread of this name blocks, as bits.
std::vector<std::uint64_t> blocked_by(const std::string& name) {
  std::vector<std::uint64_t> masks;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    std::ifstream status(task.path() / "status");
    for (std::string line; comm == name && std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) masks.push_back(std::stoull(line.substr(7), nullptr, 16));
    }
  }
  return masks;
}

TEST(sqlite_threads, take_no_signals) {
  // Broken: a program's signal handler runs on a thread it does not know.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto held = client.claim();
  ASSERT_TRUE(granted(client.attempt(held)));
  const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
  EXPECT_EQ(client.attempt(client.claim(), std::make_shared<noting_wakeup>(), 10ms).error(),
            errc::unavailable);
  std::promise<void> left;
  client.store().leave(held, {.deadline = clock::now() + generous, .in_passing = true},
                       [&](const result<departure>&) { left.set_value(); });
  for (const char* name : {"holdfast-writer", "holdfast-sqlite"}) {
    const auto masks = blocked_by(name);
    EXPECT_FALSE(masks.empty()) << name;
    for (const std::uint64_t mask : masks) {
      for (const int signal : {SIGTERM, SIGINT, SIGCHLD, SIGUSR1}) {
        EXPECT_EQ(mask >> static_cast<unsigned>(signal - 1) & 1U, 1U) << name << ' ' << signal;
      }
    }
  }
  ::close(writer_lock);
  EXPECT_EQ(left.get_future().wait_for(generous), std::future_status::ready);
}

TEST(sqlite_writer_lock, that_is_held_while_a_client_closes_leaves_no_lock_behind) {
  // Broken: a client that could not deregister is taken for a later one whose file got the same
  // inode, and its lock is never free again.
  const embedded_file file;
  const embedded_client stays(file.path());
  const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  {
    embedded_client goes(file.path());
    ASSERT_TRUE(granted(goes.attempt(goes.claim())));
    ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
    goes.close();
  }
  ::close(writer_lock);
  constexpr int newcomers = 8;
  std::vector<std::unique_ptr<embedded_client>> others;
  for (int i = 0; i < newcomers; ++i) {
    others.push_back(std::make_unique<embedded_client>(file.path()));
  }
  stays.acquire(stays.claim());
}

TEST(sqlite_writer_lock, that_is_held_does_not_delay_a_waiter_that_was_stopped) {
  // Broken: a service that is to end hangs in request_stop() while another process is stopped
  // inside the writer lock.
  const embedded_file file;
  const client holder = client::open("sqlite:" + file.path()).value();
  const client other = client::open("sqlite:" + file.path()).value();
  const auto held = mutex(holder, "stock").acquire({.wait = 0s});
  ASSERT_TRUE(held);
  std::stop_source stop;
  auto waits = std::async(std::launch::async, [&] {
    return mutex(other, "stock").acquire({.wait = patience * 4}, stop.get_token()).error();
  });
  ASSERT_TRUE(eventually([&] {
    const auto seen = holder.inspect("stock");
    return seen && seen->waiters.size() == 1;
  }));
  const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer_lock, 0);
  ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
  const auto stops = std::async(std::launch::async, [&] { stop.request_stop(); });
  EXPECT_EQ(stops.wait_for(4s), std::future_status::ready);
  EXPECT_EQ(waits.wait_for(4s), std::future_status::ready);
  ::close(writer_lock);
  EXPECT_EQ(waits.get(), errc::cancelled);
}

TEST(sqlite_writer_lock, a_try_after_a_wait_does_not_meet_its_own_place_in_the_queue) {
  // Broken: the withdrawal waits for another thread, and the try that follows it is faster.
  const embedded_file file;
  const client holder = client::open("sqlite:" + file.path()).value();
  const client other = client::open("sqlite:" + file.path()).value();
  for (int round = 0; round < 100; ++round) {
    auto held = mutex(holder, "stock").acquire({.wait = patience});
    ASSERT_TRUE(held) << round;
    mutex fair(other, "stock", {.fair = true});
    std::stop_source stop;
    auto waits = std::async(std::launch::async, [&] {
      const errc told = fair.acquire({.wait = patience}, stop.get_token()).error().code;
      static_cast<void>(held->release());
      return std::pair(told, fair.acquire({.wait = 0s}).has_value());
    });
    ASSERT_TRUE(eventually([&] {
      const auto seen = holder.inspect("stock");
      return seen && seen->waiters.size() == 1;
    }));
    stop.request_stop();
    EXPECT_EQ(waits.get(), std::pair(errc::cancelled, true)) << round;
  }
}

}  // namespace
}  // namespace holdfast::test
