// Each check of `doctor` can fail, and says what to do.
#include "integration/sqlite_harness.hpp"
#include "stores/sqlite/checks.hpp"
#include "stores/sqlite/format.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace holdfast::test {
namespace {

using status = spi::check::status;

status of(const std::vector<spi::check>& checks, const std::string& name) {
  const auto found = std::find_if(checks.begin(), checks.end(),
                                  [&](const auto& check) { return check.name == name; });
  EXPECT_NE(found, checks.end()) << name;
  if (found == checks.end()) return status::ok;
  EXPECT_EQ(found->state == status::ok || !found->remedy.empty(), true) << name;
  return found->state;
}

TEST(sqlite_doctor, finds_nothing_wrong_with_a_new_file) {
  // Broken: false alarms.
  const embedded_file file;
  const embedded_client client(file.path());
  for (const auto& check : client.probe()) {
    EXPECT_EQ(check.state, status::ok) << check.name << ": " << check.detail;
  }
}

TEST(sqlite_doctor, sees_permissions_that_let_others_in) {
  // Broken: a world-writable lock file passes.
  const embedded_file file;
  const embedded_client client(file.path());
  ::chmod(file.path().c_str(), 0666);
  EXPECT_EQ(of(client.probe(), "permissions"), status::fail);
  ::chmod(file.path().c_str(), 0660);
  EXPECT_EQ(of(client.probe(), "permissions"), status::fail);
  ::chmod(file.beside().c_str(), 0770);
  EXPECT_EQ(of(client.probe(), "permissions"), status::warn);
}

TEST(sqlite_doctor, clears_dead_clients_away) {
  // Broken: what killed processes left is there for ever.
  const embedded_file file;
  const telephone line;
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.claim());
    line.say_back('h');
    for (;;) ::pause();
  });
  ASSERT_EQ(line.hear(), 'h');
  const embedded_client client(file.path());
  EXPECT_EQ(of(client.probe(), "clients"), status::ok);
  holder.kill();
  EXPECT_EQ(of(client.probe(), "clients"), status::warn);
  EXPECT_EQ(of(client.probe(), "clients"), status::ok);
  EXPECT_TRUE(client.list().empty());
  // The gate, this client's file and its socket.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.beside()), {}), 3);
}

TEST(sqlite_doctor, sees_a_gate_that_is_held_and_files_that_are_gone) {
  // Broken: the troubles that users would call about pass.
  const embedded_file file;
  const embedded_client client(file.path());
  const int gate = ::open((file.beside() + "/gate").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(gate, LOCK_EX), 0);
  EXPECT_EQ(of(client.probe(300ms), "gate"), status::fail);
  ::flock(gate, LOCK_UN);
  ::close(gate);
  EXPECT_EQ(of(client.probe(), "gate"), status::ok);
  std::filesystem::remove_all(file.beside());
  const auto checks = client.probe();
  EXPECT_EQ(of(checks, "sign of life"), status::fail);
  std::filesystem::remove(file.path());
  EXPECT_EQ(of(client.probe(), "file"), status::fail);
}

TEST(sqlite_doctor, judges_every_fact) {
  // Broken: a check that cannot fail.
  using namespace sqlite;
  EXPECT_EQ(check_file(failure(errc::unavailable, "replaced"), "f").state, status::fail);
  EXPECT_EQ(check_format(0, 1).state, status::fail);
  EXPECT_EQ(check_format(format::application, format::version + 1).state, status::fail);
  EXPECT_EQ(check_file_system(0x6969).state, status::fail);
  EXPECT_EQ(check_space(1000).state, status::fail);
  EXPECT_EQ(check_space(2 << 20).state, status::warn);
  EXPECT_EQ(check_journal("delete", 1).state, status::fail);
  EXPECT_EQ(check_journal("wal", 0).state, status::fail);
  EXPECT_EQ(check_integrity("row 1 missing from index").state, status::fail);
  EXPECT_EQ(check_gate(failure(errc::unavailable, "late")).state, status::fail);
  EXPECT_EQ(check_gate(duration(1s)).state, status::warn);
  EXPECT_EQ(check_life(false, false).state, status::fail);
  EXPECT_EQ(check_life(true, true).state, status::fail);
  EXPECT_EQ(check_wake_ups(false).state, status::fail);
  EXPECT_EQ(check_clients(1, 1).state, status::warn);
  EXPECT_EQ(check_sharing(1, 2).state, status::warn);
}

}  // namespace
}  // namespace holdfast::test
