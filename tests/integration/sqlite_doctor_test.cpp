// Each check of `doctor` can fail: in a broken set-up exactly that one, and it says what to do. What
// cannot be broken while the store has the file open is judged from the fact alone.
#include "integration/sqlite_harness.hpp"
#include "stores/sqlite/database.hpp"
#include "stores/sqlite/doctor.hpp"
#include "support/eventually.hpp"
#include "support/forked_process.hpp"
#include "support/telephone.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using status = spi::check::status;

using findings = std::map<std::string, status>;

// The checks that are not ok.
findings found_by(const embedded_client& client, duration limit = generous) {
  findings all;
  for (const spi::check& check : client.probe(limit)) {
    if (check.state == status::ok) continue;
    EXPECT_NE(check.detail, "") << check.name;
    EXPECT_NE(check.remedy, "") << check.name;
    all[check.name] = check.state;
  }
  return all;
}

const findings nothing;

TEST(sqlite_doctor, finds_nothing_wrong_with_a_new_file) {
  // Broken: false alarms, or a check that is never made.
  const embedded_file file;
  const embedded_client client(file.path());
  EXPECT_TRUE(eventually([&] { return found_by(client) == nothing; }));
  std::vector<std::string> names;
  for (const auto& check : client.probe()) names.push_back(check.name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"file", "format", "journal", "integrity", "file system",
                                      "disk space", "permissions", "sharing", "writer lock",
                                      "clients", "sign of life", "wake-ups"}));
}

TEST(sqlite_doctor, sees_permissions_that_let_others_in) {
  // Broken: a world-writable lock file passes.
  const embedded_file file;
  const embedded_client client(file.path());
  ::chmod(file.path().c_str(), 0666);
  EXPECT_EQ(found_by(client), (findings{{"permissions", status::fail}}));
  ::chmod(file.path().c_str(), 0660);
  EXPECT_EQ(found_by(client), (findings{{"permissions", status::fail}}));
  ::chmod(file.beside().c_str(), 0770);
  EXPECT_EQ(found_by(client), (findings{{"permissions", status::warn}}));
}

// Holds a lock when it is returned, and never releases it.
forked_process holder_of(const embedded_file& file, const telephone& line,
                         const std::string& name = "stock") {
  forked_process holder([&] {
    const embedded_client client(file.path());
    client.acquire(client.claim(name));
    line.say_back('h');
    for (;;) ::pause();
  });
  EXPECT_EQ(line.hear(), 'h');
  return holder;
}

TEST(sqlite_doctor, clears_dead_clients_away) {
  // Broken: what killed processes left is there forever.
  const embedded_file file;
  const telephone line;
  forked_process holder = holder_of(file, line);
  const embedded_client client(file.path());
  EXPECT_TRUE(eventually([&] { return found_by(client) == nothing; }));
  holder.kill();
  EXPECT_EQ(found_by(client), (findings{{"clients", status::warn}}));
  EXPECT_TRUE(eventually([&] { return found_by(client) == nothing; }));
  EXPECT_TRUE(client.list().empty());
  // The writer lock, this client's file and its socket.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.beside()), {}), 3);
}

TEST(sqlite_doctor, reports_dead_clients_that_its_own_opening_cleared_away) {
  // Broken: `holdfast doctor`, which has just opened the file, never sees any dead client.
  const embedded_file file;
  const telephone line;
  holder_of(file, line).kill();
  const embedded_client client(file.path());
  EXPECT_EQ(found_by(client), (findings{{"clients", status::warn}}));
  EXPECT_TRUE(eventually([&] { return found_by(client) == nothing; }));
}

TEST(sqlite_doctor, clears_any_number_of_dead_clients_away_at_once) {
  // Broken: if many were killed together it counts some of them as users of the file.
  constexpr int many = 70;
  const embedded_file file;
  const embedded_client client(file.path());
  const telephone line;
  std::vector<forked_process> holders;
  for (int i = 0; i < many; ++i) {
    holders.push_back(holder_of(file, line, "lock/" + std::to_string(i)));
  }
  for (forked_process& each : holders) each.kill();
  const auto checks = client.probe();
  const auto clients = std::ranges::find(checks, "clients", &spi::check::name);
  ASSERT_NE(clients, checks.end());
  EXPECT_EQ(clients->detail, "0 others use the file, 70 dead ones cleared away");
  EXPECT_TRUE(client.list().empty());
}

TEST(sqlite_doctor, sees_a_gate_that_is_held) {
  // Broken: everybody waits for a stopped process and nobody is told why.
  const embedded_file file;
  const embedded_client client(file.path());
  const int writer_lock = ::open((file.beside() + "/writer_lock").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(writer_lock, LOCK_EX), 0);
  EXPECT_EQ(found_by(client, 300ms), (findings{{"writer lock", status::fail}}));
  ::close(writer_lock);
  EXPECT_TRUE(eventually([&] { return found_by(client) == nothing; }));
}

TEST(sqlite_doctor, sees_a_format_that_another_program_changed) {
  // Broken: a file that no other holdfast can open any more passes.
  const embedded_file file;
  const embedded_client client(file.path());
  forked_process stranger([&] {
    sqlite3* other = nullptr;
    sqlite3_open(file.path().c_str(), &other);
    sqlite3_exec(other, "PRAGMA user_version = 99", nullptr, nullptr, nullptr);
  });
  EXPECT_EQ(stranger.wait(), 0);
  EXPECT_EQ(found_by(client), (findings{{"format", status::fail}}));
}

TEST(sqlite_doctor, sees_files_that_are_gone) {
  // Broken: others take this client for dead, cannot reach it, or use another file.
  const embedded_file file;
  const embedded_client client(file.path());
  const auto remove_beside = [&](const std::string& ending) {
    for (const auto& entry : std::filesystem::directory_iterator(file.beside())) {
      if (entry.path().extension() == ending && entry.path().filename() != "writer_lock") {
        std::filesystem::remove(entry.path());
      }
    }
  };
  remove_beside(".sock");
  EXPECT_EQ(found_by(client), (findings{{"wake-ups", status::fail}}));
  remove_beside("");
  EXPECT_EQ(found_by(client),
            (findings{{"wake-ups", status::fail}, {"sign of life", status::fail}}));
  std::filesystem::remove(file.path());
  EXPECT_EQ(found_by(client)["file"], status::fail);
}

TEST(sqlite_doctor, sees_a_disk_that_is_nearly_or_quite_full) {
  // Broken: the disk fills up and the doctor finds nothing.
  const embedded_file file;
  forked_process mounted([&] {
    enter_own_mounts();
    if (::mount("none", file.folder().c_str(), "tmpfs", 0, "size=8m") != 0) {
      throw std::runtime_error("mount");
    }
    const embedded_client client(file.path());
    if (found_by(client) != findings{{"disk space", status::warn}}) {
      throw std::runtime_error("nearly full");
    }
    const int ballast = ::open((file.folder() / "ballast").c_str(), O_WRONLY | O_CREAT, 0600);
    const std::string block(4096, 'b');
    while (::write(ballast, block.data(), block.size()) > 0) {
    }
    if (found_by(client) != findings{{"disk space", status::fail}}) {
      throw std::runtime_error("full");
    }
  });
  EXPECT_EQ(mounted.wait(), 0);
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
  EXPECT_EQ(check_writer_lock(failure(errc::unavailable, "late")).state, status::fail);
  EXPECT_EQ(check_writer_lock(duration(1s)).state, status::warn);
  EXPECT_EQ(check_life(false, false).state, status::fail);
  EXPECT_EQ(check_life(true, true).state, status::fail);
  EXPECT_EQ(check_wake_ups(false).state, status::fail);
  EXPECT_EQ(check_clients(1, 1).state, status::warn);
  EXPECT_EQ(check_sharing(1, 2).state, status::warn);
}

}  // namespace
}  // namespace holdfast::test
