// What a torture does to a client from inside. Not in builds with sanitizers, which want to be loaded first.
#ifdef HOLDFAST_CLOCK_MODULE
#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"
#include "torture/wall_clock.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

namespace holdfast::torture {
namespace {

// It reads and writes until it is ended.
const std::vector<std::string> busy{"dd", "if=/dev/zero", "of=/dev/null", "bs=1", "status=none"};

TEST(client_page, a_client_is_killed_at_one_of_its_calls_and_says_when) {
  // Broken: the observer takes a dead client for alive, and its hold for another's.
  const test::temporary_folder folder;
  const auto file = folder.path() / "page";
  const time_point before = clock::now();
  test::child_process client(with_clock_of(HOLDFAST_CLOCK_MODULE, file, busy),
                             folder.path() / "log");
  EXPECT_FALSE(struck_at(file));
  strike_at_call(file, 100, SIGKILL);
  EXPECT_EQ(client.wait(), -1);
  const auto struck = struck_at(file);
  ASSERT_TRUE(struck);
  EXPECT_GE(*struck, before);
  EXPECT_LE(*struck, clock::now());
}

TEST(client_page, a_strike_that_was_taken_back_does_not_come) {
  const test::temporary_folder folder;
  const auto file = folder.path() / "page";
  test::child_process client(with_clock_of(HOLDFAST_CLOCK_MODULE, file, busy),
                             folder.path() / "log");
  strike_at_call(file, std::int64_t{1} << 60, SIGKILL);
  strike_at_call(file, 0, 0);
  EXPECT_TRUE(client.alive());
  client.end(SIGTERM);
  EXPECT_FALSE(struck_at(file));
}

}  // namespace
}  // namespace holdfast::torture
#endif
