#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace holdfast::test {
namespace {

namespace fs = std::filesystem;

std::string folder_of(int process) {
  return "holdfast-test-" + std::to_string(process) + "-aaaaaa";
}

TEST(temporary_folder, what_a_killed_process_left_long_ago_is_taken_away) {
  // Broken: each run that is killed costs the machine its servers' files, in memory, until it is restarted.
  const int dead = ::fork();
  if (dead == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(dead, nullptr, 0), dead);
  const temporary_folder in;
  const fs::path abandoned = in.path() / folder_of(dead);
  const fs::path recent = in.path() / folder_of(dead + 1'000'000'000);
  const fs::path owned = in.path() / folder_of(::getppid());
  const fs::path foreign = in.path() / "holdfast-tests";
  for (const fs::path& each : {abandoned, recent, owned, foreign}) {
    fs::create_directories(each / "data");
    if (each != recent)
      fs::last_write_time(each, fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const temporary_folder next(in.path());
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(recent)) << "perhaps of another container";
  EXPECT_TRUE(fs::exists(owned));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_TRUE(fs::exists(next.path()));
}

}  // namespace
}  // namespace holdfast::test
