// fork() in a program that has locks, and several clients in one program.
#include "integration/sqlite_harness.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

TEST(sqlite_fork, makes_an_inert_child_and_leaves_the_parents_locks_alone) {
  // Broken: a child that ends, or that uses what it inherited, frees or breaks its parent's locks.
  const embedded_file file;
  auto client = std::make_optional<embedded_client>(file.path());
  const auto claim = client->claim();
  ASSERT_TRUE(granted(client->attempt(claim)));
  forked_process child([&] {
    const auto check = [](bool fine, const char* what) {
      if (!fine) throw std::runtime_error(what);
    };
    check(client->attempt(client->claim()).error() == errc::cancelled, "attempt");
    check(client->leave(claim).error() == errc::cancelled, "leave");
    check(client->store().life_descriptor() == -1, "life");
    check(!client->store().observe({"", "stock"}, [](const auto&) {}), "observe");
    client.reset();
  });
  EXPECT_EQ(child.wait(), 0);
  const embedded_client other(file.path());
  auto attempt = other.claim();
  attempt->queued = false;
  EXPECT_FALSE(granted(other.attempt(attempt)));
  EXPECT_EQ(client->renew(claim).state, hold_state::renewed);
  EXPECT_EQ(client->leave(claim).value(), departure::was_holder);
  EXPECT_TRUE(granted(other.attempt(attempt)));
}

TEST(sqlite_fork, lets_the_child_open_a_client_of_its_own) {
  // Broken: a server that forks its workers cannot lock in them.
  const embedded_file file;
  const embedded_client parent(file.path());
  const auto claim = parent.claim();
  ASSERT_TRUE(granted(parent.attempt(claim)));
  forked_process child([&] {
    const embedded_client own(file.path());
    auto attempt = own.claim();
    attempt->queued = false;
    if (granted(own.attempt(attempt))) throw std::runtime_error("two holders");
    own.acquire(own.claim("other"));
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(parent.leave(claim).value(), departure::was_holder);
}

TEST(sqlite_fork, gives_the_childs_own_client_locks_of_its_own_on_the_file) {
  // Broken: SQLite in the child relies on file locks that only the parent had. When the parent is
  // gone, a foreign process takes itself for the last one and deletes the log that the child is
  // using.
  const embedded_file file;
  const telephone line;
  auto parent = std::make_optional<embedded_client>(file.path());
  ASSERT_TRUE(granted(parent->attempt(parent->claim("other"))));
  forked_process child([&] {
    const embedded_client own(file.path());
    line.say_back('o');
    if (line.hear_back() != 'l') throw std::runtime_error("lock");
    own.acquire(own.claim());
    line.say_back('h');
    if (line.hear_back() != 'e') throw std::runtime_error("end");
  });
  ASSERT_EQ(line.hear(), 'o');
  parent.reset();
  sqlite3* stranger = nullptr;
  sqlite3_open(file.path().c_str(), &stranger);
  sqlite3_exec(stranger, "SELECT count(*) FROM resources", nullptr, nullptr, nullptr);
  sqlite3_close(stranger);
  EXPECT_TRUE(std::filesystem::exists(file.path() + "-wal"));
  line.say('l');
  ASSERT_EQ(line.hear(), 'h');
  {
    const embedded_client other(file.path());
    auto attempt = other.claim();
    attempt->queued = false;
    EXPECT_FALSE(granted(other.attempt(attempt))) << "two holders";
  }
  line.say('e');
  EXPECT_EQ(child.wait(), 0);
}

TEST(sqlite_fork, in_the_middle_of_transactions_leaves_children_that_can_lock) {
  // Broken: a child inherits SQLite in a state that another thread was just changing.
  const embedded_file file;
  const embedded_client parent(file.path());
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto claim = parent.claim("busy");
      parent.acquire(claim);
      static_cast<void>(parent.leave(claim));
    }
  });
  for (int round = 0; round < 30; ++round) {
    forked_process child([&] {
      const embedded_client own(file.path());
      own.acquire(own.claim());
      forked_process grandchild([&] {
        const embedded_client again(file.path());
        auto attempt = again.claim();
        attempt->queued = false;
        if (granted(again.attempt(attempt))) throw std::runtime_error("two holders");
      });
      if (grandchild.wait() != 0) throw std::runtime_error("grandchild");
    });
    ASSERT_EQ(child.wait(), 0) << round;
  }
}

TEST(sqlite_fork, does_not_wait_for_a_thread_that_a_foreign_program_keeps_inside) {
  // Broken: fork() hangs as long as somebody has the file locked; or its child trusts an
  // intermediate state.
  const embedded_file file;
  static_cast<void>(embedded_client(file.path()).probe());
  const telephone line;
  forked_process foreigner([&] {  // before this process has the file open: it is unrelated
    static_cast<void>(line.hear_back());
    sqlite3* other = nullptr;
    sqlite3_open(file.path().c_str(), &other);
    sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    line.say_back('b');
    static_cast<void>(line.hear_back());
    sqlite3_exec(other, "COMMIT", nullptr, nullptr, nullptr);
  });
  const embedded_client client(file.path());
  line.say('b');
  ASSERT_EQ(line.hear(), 'b');
  std::jthread stuck([&] { static_cast<void>(client.attempt(client.claim())); });
  int status = -1;
  for (int tries = 0; tries < 100 && status != 0;
       ++tries) {  // until the thread is at the right place
    forked_process child([&] {
      const auto opened =
          sqlite::sqlite_store::open(spi::make_reactor(), {.path = file.path(), .deadline = 10ms});
      const bool refused = !opened && opened.error().detail.find("forked") != std::string::npos;
      if (!refused) throw std::runtime_error("not inside yet");
    });
    status = child.wait();
  }
  EXPECT_EQ(status, 0);
  line.say('c');
  EXPECT_EQ(foreigner.wait(), 0);
}

// Whether other processes see a POSIX lock of this one on the file.
bool locked_by_us(const std::string& path) {
  forked_process stranger([&] {
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (::fcntl(file, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) throw std::runtime_error("");
  });
  return stranger.wait() == 0;
}

TEST(sqlite_clients, that_open_and_close_leave_the_file_locks_of_the_others) {
  // Broken: closing any descriptor of the file drops all locks that this process has on it.
  const embedded_file file;
  const embedded_client stays(file.path());
  EXPECT_TRUE(locked_by_us(file.path()));
  { const embedded_client goes(file.path()); }
  EXPECT_TRUE(locked_by_us(file.path()));
}

TEST(sqlite_clients, of_one_process_exclude_each_other_and_one_may_go) {
  // Broken: closing one client drops the file locks of the other, and other processes write beside
  // it.
  const embedded_file file;
  const embedded_client stays(file.path());
  const auto claim = stays.claim();
  for (int round = 0; round < 5; ++round) {
    const embedded_client goes(file.path());
    ASSERT_TRUE(granted(goes.attempt(goes.claim("other"))));
    if (round == 0) {
      ASSERT_TRUE(granted(stays.attempt(claim)));
    }
    auto attempt = goes.claim();
    attempt->queued = false;
    EXPECT_FALSE(granted(goes.attempt(attempt)));
  }
  EXPECT_EQ(stays.renew(claim).state, hold_state::renewed);
  for (int i = 0; i < 100; ++i) {
    const auto own = stays.claim("own");
    ASSERT_TRUE(granted(stays.attempt(own)));
    ASSERT_EQ(stays.leave(own).value(), departure::was_holder);
  }
}

TEST(sqlite_clients, of_many_threads_share_one_connection) {
  // Broken: threads of one client corrupt each other's transactions.
  const embedded_file file;
  const embedded_client client(file.path());
  std::vector<std::jthread> threads;
  std::atomic<int> inside{0};
  std::atomic<int> collisions{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        const auto claim = i % 2 == 0 ? client.fair_claim() : client.claim();
        client.acquire(claim);
        if (++inside != 1) ++collisions;
        --inside;
        static_cast<void>(client.leave(claim));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(collisions, 0);
  EXPECT_TRUE(client.list().empty());
}

}  // namespace
}  // namespace holdfast::test
