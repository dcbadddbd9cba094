// The embedded store on a full disk, and the owner of a new file.
#include "integration/sqlite_harness.hpp"
#include "support/forked_process.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

// `folder` becomes a disk of 1 MiB, for this process.
void enter_small_disk(const fs::path& folder) {
  enter_own_mounts();
  if (::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") != 0) {
    throw std::runtime_error("mount");
  }
}

// Writes until the disk is full.
void fill(const fs::path& folder) {
  const int ballast = ::open((folder / "ballast").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const std::string block(512, 'b');
  while (::write(ballast, block.data(), block.size()) > 0) {
  }
  ::close(ballast);
}

void check_full_disk(const embedded_file& file) {
  const auto check = [](bool fine, const std::string& what) {
    if (!fine) throw std::runtime_error(what);
  };
  const embedded_client client(file.path());
  const embedded_client other(file.path());
  std::vector<spi::claim_ptr> held;
  for (int i = 0; i < 20; ++i) {
    held.push_back(client.claim("held/" + std::to_string(i)));
    check(granted(client.attempt(held.back())), "taken");
  }
  fill(file.folder());
  for (const auto& claim : held) {
    const auto left = client.leave(claim);
    check(left.has_value(), left ? "" : left.error().message());
    check(*left == departure::was_holder, "given back on a full disk");
  }
  // Known names continue to work as long as nothing grows.
  for (int i = 0; i < 3000; ++i) {
    const auto claim = client.claim("held/1");
    const auto taken = client.attempt(claim);
    check(granted(taken), taken ? "blocked" : taken.error().message());
    const auto left = client.leave(claim);
    check(left.has_value(), left ? "" : std::to_string(i) + " " + left.error().message());
  }
  // New names make the file grow until there is a clear answer.
  const auto kept = client.claim("kept");
  check(granted(client.attempt(kept)), "taken");
  std::optional<error> refused;
  for (int i = 0; i < 100'000 && !refused; ++i) {
    const auto answer = client.attempt(client.claim("new/" + std::to_string(i)));
    if (!answer) refused = answer.error();
  }
  check(refused && *refused == errc::unavailable, "full is said");
  check(refused->detail.find("full") != std::string::npos, refused->message());
  // A newcomer is let in, or gets an error.
  const error newcomer = opening(file.path());
  check(newcomer == errc::busy || newcomer == errc::unavailable, newcomer.message());
  check(newcomer == errc::busy || newcomer.detail.find("free some space") != std::string::npos,
        newcomer.message());
  // Now at the latest a release may fail. This is reported, and made up for when there is room.
  const auto left = client.leave(kept, 1s);
  check(left || left.error() == errc::unavailable, "a definite answer");
  fs::remove(file.folder() / "ballast");
  other.acquire(other.claim("kept"));
}

TEST(sqlite_full_disk, can_still_give_back_what_is_held_and_recovers) {
  // Broken: a full disk holds all locks until their processes end.
  const embedded_file file;
  forked_process mounted([&] {
    enter_small_disk(file.folder());
    check_full_disk(file);
  });
  EXPECT_EQ(mounted.wait(), 0);
}

TEST(sqlite_full_disk, is_what_a_new_file_says_wherever_the_room_ends) {
  // Broken: "disk I/O error", and an operator who looks for a broken disk.
  const embedded_file file;
  forked_process mounted([&] {
    enter_small_disk(file.folder());
    fill(file.folder());
    const fs::path ballast = file.folder() / "ballast";
    int refusals = 0;
    for (error told = opening(file.path()); told != errc::busy; told = opening(file.path())) {
      ++refusals;
      if (told.detail.find("free some space") == std::string::npos) {
        throw std::runtime_error(told.message());
      }
      for (const char* part : {"", "-wal", "-shm"}) fs::remove(file.path() + part);
      fs::resize_file(ballast, fs::file_size(ballast) - 4096);
    }
    if (refusals < 5) throw std::runtime_error("there was room");
  });
  EXPECT_EQ(mounted.wait(), 0);
}

TEST(sqlite_new_file, is_private_whatever_the_umask) {
  // Broken: one user's locks are in another's hands.
  const embedded_file file;
  forked_process process([&] {
    const auto check = [](bool fine, const char* what) {
      if (!fine) throw std::runtime_error(what);
    };
    ::umask(0);
    { const embedded_client client(file.path()); }
    struct stat status {};
    ::stat(file.path().c_str(), &status);
    check((status.st_mode & 0777U) == 0600, "file 0600");
    ::stat(file.beside().c_str(), &status);
    check((status.st_mode & 0777U) == 0700, "folder beside 0700");
  });
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace holdfast::test
