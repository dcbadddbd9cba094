// Count-down latches: an id counts once, a count never goes below zero, a latch ends by itself.
#include "ledger_harness.hpp"

namespace holdfast::memory {

class latches_test : public ::testing::Test {
 protected:
  memory::ledger book;
  const spi::resource_id start{"", "start"};
  spi::server_time now{1000s};

  struct changed {
    spi::latch_state state;
    bool counted = false;  // its watchers are notified
  };
  result<changed> set(std::uint32_t count, std::uint64_t id, duration life = 1h) {
    return change({spi::latch_change::kind::set, count, id_of(id), life});
  }
  result<changed> down(std::uint32_t count, std::uint64_t id, duration life = 1h) {
    return change({spi::latch_change::kind::down, count, id_of(id), life});
  }
  std::optional<std::uint32_t> count() {
    effects out;
    return book.read_latch(now, start, out)->count;
  }

 private:
  result<changed> change(const spi::latch_change& what) {
    effects out;
    auto state = book.change_latch(now, start, what, out);
    if (!state) return tl::unexpected(std::move(state.error()));
    return changed{*state, !out.latches.empty()};
  }
};

TEST_F(latches_test, a_latch_counts_down_to_zero_and_stays_there) {
  EXPECT_EQ(count(), std::nullopt);
  EXPECT_EQ(set(3, 1)->state.count, 3U);
  EXPECT_EQ(down(1, 2)->state.count, 2U);
  EXPECT_EQ(down(5, 3)->state.count, 0U);
  EXPECT_FALSE(down(1, 4)->counted);
  EXPECT_EQ(count(), 0U);
}

// A count-down whose answer was lost is sent again.
TEST_F(latches_test, a_repeated_down_counts_once) {
  static_cast<void>(set(3, 1));
  EXPECT_TRUE(down(1, 2)->counted);
  const auto again = down(1, 2);
  EXPECT_FALSE(again->counted);
  EXPECT_EQ(again->state.count, 2U);
}

TEST_F(latches_test, a_live_latch_is_not_set_again_but_one_at_zero_is) {
  static_cast<void>(set(1, 1));
  EXPECT_EQ(set(5, 2).error(), errc::conflict);
  EXPECT_EQ(count(), 1U);
  static_cast<void>(down(1, 3));
  EXPECT_EQ(set(5, 2)->state.count, 5U);
}

TEST_F(latches_test, a_repeated_set_answers_the_count_as_it_is) {
  static_cast<void>(set(3, 1));
  static_cast<void>(down(1, 2));
  const auto again = set(3, 1);
  EXPECT_EQ(again->state.count, 2U);
  EXPECT_FALSE(again->counted);
}

// Late repetitions of the first count must not count on the second.
TEST_F(latches_test, ids_of_an_earlier_count_do_not_count_on_the_next) {
  static_cast<void>(set(2, 1));
  static_cast<void>(down(1, 2));
  static_cast<void>(down(1, 3));
  static_cast<void>(down(1, 4));
  static_cast<void>(set(2, 5));
  EXPECT_EQ(down(1, 2)->state.count, 2U);
  EXPECT_EQ(down(1, 4)->state.count, 2U);
  EXPECT_EQ(set(2, 1)->state.count, 2U);
  EXPECT_EQ(down(1, 6)->state.count, 1U);
}

TEST_F(latches_test, an_unset_latch_cannot_go_down) {
  EXPECT_EQ(down(1, 1).error(), errc::not_held);
}

TEST_F(latches_test, counts_have_limits) {
  EXPECT_EQ(set(0, 1).error(), errc::invalid);
  EXPECT_EQ(set(1'000'001, 1).error(), errc::invalid);
  EXPECT_EQ(set(1'000'000, 1)->state.count, 1'000'000U);
  EXPECT_EQ(down(0, 2).error(), errc::invalid);
}

TEST_F(latches_test, a_latch_lives_a_while_after_its_last_change_also_at_zero) {
  static_cast<void>(set(2, 1));
  now += 59min;
  static_cast<void>(down(2, 2));
  now += 59min;
  EXPECT_EQ(count(), 0U);
  // A repetition is no change.
  static_cast<void>(down(2, 2));
  now += 1min;
  EXPECT_EQ(count(), std::nullopt);
  EXPECT_EQ(set(1, 3, {})->state.count, 1U);
  now += 24h - 1ns;
  EXPECT_EQ(count(), 1U);
  now += 1ns;
  EXPECT_EQ(count(), std::nullopt);
}

TEST_F(latches_test, a_set_that_is_refused_leaves_nothing) {
  EXPECT_EQ(set(0, 1).error(), errc::invalid);
  EXPECT_EQ(count(), std::nullopt);
}

}  // namespace holdfast::memory
