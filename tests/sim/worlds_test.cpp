// The shipped engine in simulated worlds: no seed may break a guarantee, and a seed is a whole
// run record: the same one gives the same run.
#include "sim/campaign.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace holdfast::sim {

namespace {

// Sanitizers make a world take ten times as long; what they look for shows in fewer of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t seeds = 5'000;
#else
constexpr std::uint64_t seeds = 10'000;  // a million: make test-long
#endif

campaign_settings campaign(std::uint64_t first, std::uint64_t count) {
  campaign_settings settings;
  settings.first = first;
  settings.seeds = count;
  settings.threads = std::max(1U, std::thread::hardware_concurrency());
  return settings;
}

void expect_clean(const campaign_result& result) {
  for (const failed_seed& each : result.failed) ADD_FAILURE() << report(each, {}, "build/sim");
}

}  // namespace

// If this fails, some guarantee of docs/guarantees.md is broken; the message says which, and how to
// reproduce it.
TEST(worlds, many_seeds_break_no_guarantee) {
  const campaign_result result = run_campaign(campaign(1, seeds));
  EXPECT_EQ(result.seeds, seeds);
  // A world in which nobody gets anything would prove nothing.
  EXPECT_GT(result.grants, 5 * seeds);
  expect_clean(result);
}

// If this fails, a failure that the simulator finds could not be reproduced: chance, time or an
// address has crept into the engine or the worlds.
TEST(worlds, a_seed_gives_the_same_trace_every_time) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const world_outcome once = run_seed(seed);
    const world_outcome again = run_seed(seed);
    ASSERT_EQ(once.hash, again.hash) << "seed " << seed;
    ASSERT_EQ(once.steps, again.steps) << "seed " << seed;
    ASSERT_EQ(once.length, again.length) << "seed " << seed;
  }
}

// If this fails, what a thread of the campaign sees depends on the others.
TEST(worlds, the_number_of_threads_does_not_matter) {
  campaign_settings settings = campaign(1000, 1000);
  settings.threads = 1;
  const std::uint64_t alone = run_campaign(settings).hash;
  settings.threads = 3;
  EXPECT_EQ(run_campaign(settings).hash, alone);
}

// If this fails, other seeds are only the same world again.
TEST(worlds, different_seeds_are_different_worlds) {
  EXPECT_NE(run_seed(1).hash, run_seed(2).hash);
}

// If this fails, a timeline that is printed shows another run than the one that failed.
TEST(worlds, writing_the_timeline_changes_nothing) {
  std::size_t lines = 0;
  const world_outcome told = run_seed(7, {}, [&lines](const std::string&) { ++lines; });
  EXPECT_EQ(told.hash, run_seed(7).hash);
  EXPECT_GT(lines, 10U);
}

// If this fails, a defect has come back that a seed once showed.
TEST(worlds, seeds_that_once_failed_stay_clean) {
  const char* const source = std::getenv("HOLDFAST_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  std::ifstream list(std::string(source) + "/lab/sim/seeds.txt");
  ASSERT_TRUE(list.is_open());
  std::size_t count = 0;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::uint64_t seed = 0;
    std::istringstream(line) >> seed;
    ++count;
    const world_outcome outcome = run_seed(seed);
    EXPECT_TRUE(outcome.violations.empty()) << line;
  }
  EXPECT_GT(count, 0U);
}

// If this fails, what is left out of a world to make it smaller is not left out.
TEST(worlds, a_restricted_world_has_no_more_than_it_may) {
  restrictions few;
  few.clients = 2;
  few.actors = 1;
  few.rounds = 1;
  few.troubles = {};
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const plan small = draw_plan(seed, few);
    EXPECT_LE(small.clients, 2U);
    EXPECT_EQ(small.actors, 1U);
    EXPECT_EQ(small.rounds, 1U);
    EXPECT_TRUE(small.disturbances.empty());
    EXPECT_LE(run_seed(seed, few).grants, 2U);
  }
}

}  // namespace holdfast::sim
