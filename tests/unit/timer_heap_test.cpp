#include "runtime/timer_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::runtime {
namespace {

constexpr time_point at(int tick) { return time_point(duration(tick)); }

// Broken: a lease would be renewed after one that had more time.
TEST(timer_heap, gives_the_earliest_first_and_equals_in_the_order_of_their_coming) {
  timer_heap heap;
  std::string said;
  for (const auto& [tick, letter] :
       std::vector<std::pair<int, char>>{{3, 'd'}, {1, 'a'}, {2, 'b'}, {3, 'e'}, {2, 'c'}}) {
    heap.add(at(tick), [&said, letter = letter] { said += letter; });
  }
  while (!heap.empty()) heap.pop()();
  EXPECT_EQ(said, "abcde");
}

// Broken: cancelling a timer that has fired would cancel another one in the same slot.
TEST(timer_heap, an_old_id_does_not_cancel_the_next_user_of_its_slot) {
  timer_heap heap;
  const auto old = heap.add(at(1), [] {});
  EXPECT_NE(old, 0U);
  heap.pop();
  const auto next = heap.add(at(2), [] {});
  EXPECT_NE(old, next);
  EXPECT_FALSE(heap.cancel(old));
  EXPECT_FALSE(heap.cancel(0));
  EXPECT_FALSE(heap.cancel(~timer_heap::timer_id{0}));
  EXPECT_EQ(heap.size(), 1U);
  EXPECT_TRUE(heap.cancel(next));
  EXPECT_FALSE(heap.cancel(next));
  EXPECT_TRUE(heap.empty());
  EXPECT_EQ(heap.earliest(), time_point::max());
}

// Broken: some order of adding, cancelling and firing would lose a timer or fire one too late. The
// model is an ordered map.
TEST(timer_heap, agrees_with_a_sorted_map_over_random_histories) {
  std::mt19937 random(20240817);
  timer_heap heap;
  std::map<std::pair<int, int>, timer_heap::timer_id> model;
  int fired = -1;
  for (int step = 0; step < 100'000; ++step) {
    const auto choice = random() % 8;
    if (choice < 4) {
      const int tick = static_cast<int>(random() % 500);
      model[{tick, step}] = heap.add(at(tick), [&fired, step] { fired = step; });
    } else if (choice < 6 && !model.empty()) {
      const auto chosen = std::next(
          model.begin(), static_cast<long>(random() % std::min<std::size_t>(model.size(), 50)));
      EXPECT_TRUE(heap.cancel(chosen->second));
      model.erase(chosen);
    } else if (!model.empty()) {
      ASSERT_EQ(heap.earliest(), at(model.begin()->first.first));
      heap.pop()();
      ASSERT_EQ(fired, model.begin()->first.second);
      model.erase(model.begin());
    }
    ASSERT_EQ(heap.size(), model.size());
  }
}

}  // namespace
}  // namespace holdfast::runtime
