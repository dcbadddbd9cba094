// Which threads sleep in the wait line, and which are woken.
#include "runtime/wait_line.hpp"

#include "reactor_harness.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

namespace holdfast::test {
namespace {

using runtime::wait_line;
using runtime::waiter;
using runtime::wake_party;

// A thread in the wait line that sleeps until it is called.
struct sleeper {
  explicit sleeper(wait_line& line)
      : place(&line.enter(flag)), thread([this] {
          place->sleep();
          up = true;
        }) {}

  std::atomic<bool> flag{false};
  std::atomic<bool> up{false};
  waiter* place;
  std::jthread thread;
};

std::vector<std::unique_ptr<sleeper>> sleepers(wait_line& line) {
  std::vector<std::unique_ptr<sleeper>> all;
  for (int i = 0; i < 80; ++i) all.push_back(std::make_unique<sleeper>(line));
  return all;
}

// Broken: an answer would leave its thread asleep, or wake others without one.
TEST(wait_line, a_party_gets_up_and_nobody_else) {
  wait_line line;
  wake_party party;
  const auto all = sleepers(line);
  for (std::size_t i = 0; i < all.size(); i += 3) party.add(all[i]->place->call());
  party.wake();
  for (std::size_t i = 0; i < all.size(); i += 3) all[i]->thread.join();
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]->up, i % 3 == 0) << i;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    all[i]->place->wake();
    EXPECT_TRUE(eventually([&] { return all[i]->up.load(); })) << i;
  }
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i]->up, i % 3 == 0 || i % 2 == 0) << i;
  line.wake_all();
}

// Broken: a second party would be the first one again, or nobody.
TEST(wait_line, a_party_is_empty_when_it_is_up) {
  wait_line line;
  wake_party party;
  const auto all = sleepers(line);
  for (std::size_t i = 0; i < all.size(); ++i) {
    party.add(all[i]->place->call());
    party.add(all[i]->place->call());  // adding twice counts once
    if (i % 7 == 0) party.wake();
  }
  party.wake();
  party.wake();
  for (const auto& each : all) each->thread.join();
}

// Broken: a thread that waits for long would take the answer of another for its own.
TEST(wait_line, a_spurious_wake_up_sleeps_on) {
  wait_line line;
  sleeper first(line);
  std::atomic<bool> flag{false};
  // All rows and all bits, twice, so that some share the first one's.
  for (int i = 0; i < 4'096; ++i) {
    waiter& other = line.enter(flag);
    other.wake();
    other.sleep();
    line.leave(other);
  }
  EXPECT_FALSE(first.up);
  first.place->wake();
}

// Broken: a call that comes just before its thread falls asleep would be lost.
TEST(wait_line, a_waiter_called_before_it_sleeps_does_not_sleep) {
  wait_line line;
  wake_party party;
  std::atomic<bool> flag{false};
  waiter& first = line.enter(flag);
  waiter& second = line.enter(flag);
  party.add(first.call());
  party.wake();
  second.wake();
  first.sleep();
  second.sleep();
}

// Broken: each wait would take memory of its own, forever.
TEST(wait_line, places_that_are_given_back_are_used_again) {
  wait_line line;
  std::atomic<bool> flag{false};
  std::set<const waiter*> places;
  for (int round = 0; round < 200; ++round) {
    waiter& dismissed = line.enter(flag);
    waiter& other = line.enter(flag);
    EXPECT_EQ(line.size(), 2U);
    places.insert({&dismissed, &other});
    line.dismiss(dismissed);
    EXPECT_TRUE(dismissed.dismissed());
    EXPECT_EQ(line.size(), 1U);
    EXPECT_EQ(line.find(&flag), &other);
    line.give_back(dismissed);
    line.leave(other);
    EXPECT_EQ(line.size(), 0U);
  }
  EXPECT_LE(places.size(), 4U);
}

}  // namespace
}  // namespace holdfast::test
