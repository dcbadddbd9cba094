// The embedded store among users of one group, and in places that a program meets in practice.
#include "integration/sqlite_harness.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

constexpr gid_t common = 54'321;

void require(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(what);
}

// A user of its own with a group of its own, who is a member of the common one and lets nobody else
// read what it makes. A test that does not run as root can only be its own user.
forked_process as_user(uid_t user, const std::function<void()>& part) {
  return forked_process([user, &part] {
    ::umask(0077);
    require(
        ::geteuid() != 0 || (::setgroups(1, &common) == 0 && ::setresgid(user, user, user) == 0 &&
                             ::setresuid(user, user, user) == 0),
        "cannot become another user");
    part();
  });
}

class sqlite_sharing : public ::testing::TestWithParam<mode_t> {};

TEST_P(sqlite_sharing, users_of_a_group_exclude_wake_and_survive_each_other) {
  // Broken: the first user's umask or own group shuts the second one out, or leaves it without
  // wake-ups, or with a dead user's lock that is held forever.
  const embedded_file file;
  std::ofstream(file.path()).close();
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.path().c_str(), 0, common), 0);
    ASSERT_EQ(::chown(file.folder().c_str(), 0, common), 0);
  }
  ASSERT_EQ(::chmod(file.path().c_str(), 0660), 0);
  ASSERT_EQ(::chmod(file.folder().c_str(), GetParam()), 0);
  const telephone to_first;
  const telephone to_second;
  forked_process first = as_user(2001, [&] {
    const embedded_client client(file.path());
    const auto claim = client.claim();
    require(granted(client.attempt(claim)), "it was free");
    to_first.say_back('h');
    static_cast<void>(to_first.hear_back());
    require(client.leave(claim).value() == departure::was_holder, "it was held");
    static_cast<void>(to_first.hear_back());
    client.acquire(client.claim());  // from a killed process of another user
  });
  ASSERT_EQ(to_first.hear(), 'h');
  forked_process second = as_user(2002, [&] {
    const embedded_client client(file.path());
    const auto wakeup = std::make_shared<noting_wakeup>();
    require(queued(client.attempt(client.fair_claim(), wakeup)), "it is held by another user");
    to_second.say_back('w');
    require(wakeup->is_granted(), "told by another user");
    to_second.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(to_second.hear(), 'w');
  to_first.say('r');
  ASSERT_EQ(to_second.hear(), 'h');
  second.kill();
  to_first.say('a');
  EXPECT_EQ(first.wait(), 0);
}

// With the group's bit, as the manual says, and without.
INSTANTIATE_TEST_SUITE_P(folders, sqlite_sharing, ::testing::Values(02770, 0770));

TEST(sqlite_places, a_relative_path_means_the_folder_in_which_it_was_opened) {
  // Broken: a program that becomes a daemon takes its own file for deleted, or finds nobody.
  const embedded_file file;
  forked_process daemon([&] {
    require(::chdir(file.folder().c_str()) == 0, "chdir");
    const embedded_client first("locks.db");
    require(::chdir("/") == 0, "chdir");
    const embedded_client second(file.path());
    const auto held = first.claim();
    const auto waits = second.fair_claim();
    const auto wakeup = std::make_shared<noting_wakeup>();
    require(granted(first.attempt(held)), "it was free");
    require(queued(second.attempt(waits, wakeup)), "it is one file");
    require(first.leave(held).value() == departure::was_holder, "it was held");
    require(wakeup->is_granted(), "told through the one folder");
  });
  EXPECT_EQ(daemon.wait(), 0);
}

TEST(sqlite_places, sqlites_word_for_no_file_is_not_taken_for_a_files_name) {
  // Broken: a user who wants locks in memory gets a file with a strange name in the current folder.
  const auto reactor = spi::make_reactor();
  const auto opened = sqlite::sqlite_store::open(reactor, {.path = ":memory:"});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), errc::invalid);
  EXPECT_NE(opened.error().detail.find("memory:"), std::string::npos);
  EXPECT_FALSE(fs::exists(":memory:"));
}

TEST(sqlite_places, ten_thousand_stale_files_are_cleared_away_in_time) {
  // Broken: after many processes were killed, nobody can open the store before the deadline.
  const embedded_file file;
  { const embedded_client client(file.path()); }
  constexpr int stale = 10'000;
  for (int i = 0; i < stale; ++i) {
    std::string token(33, '\0');
    std::snprintf(token.data(), token.size(), "%032x", static_cast<unsigned>(i));
    token.pop_back();
    const std::string path = file.beside() + "/" + token;
    std::ofstream(path + ".sock").close();
    if (i % 2 == 0) std::ofstream(path).close();
  }
  const embedded_client client(file.path());
  ASSERT_TRUE(granted(client.attempt(client.claim())));
  const auto left = std::distance(fs::directory_iterator(file.beside()), {});
  EXPECT_EQ(left, 3) << "the writer lock, this client's sign of life and its socket";
}

TEST(sqlite_places, in_the_middle_of_a_line_one_waits_without_writing) {
  // Broken: thousands of waiters at one lock make thousands of write transactions every second.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto held = client.claim();
  const auto head = client.fair_claim();
  const auto middle = client.fair_claim();
  ASSERT_TRUE(granted(client.attempt(held)));
  ASSERT_TRUE(queued(client.attempt(head)));
  ASSERT_TRUE(queued(client.attempt(middle)));
  const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
  EXPECT_EQ(client.renew(middle).state, hold_state::waiting);
  EXPECT_EQ(client.renew(head, 50ms).state, hold_state::unknown) << "it asks, and cannot";
  ::close(writer_lock);
  EXPECT_EQ(client.renew(head).state, hold_state::waiting);
}

TEST(sqlite_paths, that_lead_to_one_file_share_its_locks) {
  // Broken: clients by two paths to one file have two folders of signs of life, and see each other
  // as dead.
  const embedded_file file;
  const fs::path way = file.folder() / "way";
  fs::create_symlink(file.folder(), way);
  const embedded_client first(file.path());
  fs::create_symlink(file.path(), file.folder() / "other.db");
  const embedded_client second((way / "locks.db").string());
  const embedded_client third((file.folder() / "other.db").string());
  ASSERT_TRUE(granted(first.attempt(first.claim())));
  auto claim = second.claim();
  claim->queued = false;
  EXPECT_FALSE(granted(second.attempt(claim)));
  auto other = third.claim();
  other->queued = false;
  EXPECT_FALSE(granted(third.attempt(other)));
}

TEST(sqlite_paths, may_be_longer_than_a_sockets_address) {
  // Broken: a deep home folder has no wake-ups.
  const embedded_file file;
  const fs::path deep = file.folder() / std::string(100, 'd') / std::string(100, 'e');
  fs::create_directories(deep);
  const embedded_client first((deep / "locks.db").string());
  const embedded_client second((deep / "locks.db").string());
  const auto holder = first.claim();
  const auto waiter = second.fair_claim();
  const auto wakeup = std::make_shared<noting_wakeup>();
  ASSERT_TRUE(granted(first.attempt(holder)));
  ASSERT_TRUE(queued(second.attempt(waiter, wakeup)));
  static_cast<void>(first.leave(holder));
  EXPECT_TRUE(wakeup->is_granted());
}

}  // namespace
}  // namespace holdfast::test
