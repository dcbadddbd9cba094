// Readers and writers, permits, upgrade and downgrade, and the kinds that do not mix.
#include "ledger_harness.hpp"

namespace holdfast::memory {

using ledger_modes = ledger_harness;

TEST_F(ledger_modes, readers_share_and_each_has_a_fence_of_its_own) {
  EXPECT_EQ(granted(make_claim(1, shared())).fence.value(), 1U);
  EXPECT_EQ(granted(make_claim(2, shared())).fence.value(), 2U);
  EXPECT_TRUE(blocked(make_claim(3)).queued);
  EXPECT_EQ(pushes(), (said{"wanted 1", "wanted 2"}));
}

TEST_F(ledger_modes, a_writer_keeps_readers_out) {
  granted(make_claim(1));
  blocked(make_claim(2, shared()));
}

// Otherwise readers that arrive one after another would starve a writer.
TEST_F(ledger_modes, a_reader_goes_behind_a_writer_that_waits) {
  const auto one = make_claim(1, shared()), two = make_claim(2), three = make_claim(3, shared());
  granted(one);
  blocked(two);
  blocked(three);
  EXPECT_FALSE(blocked(make_claim(4, {.mode = spi::mode::shared, .queued = false})).queued);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 2"});
  leave(two);
  EXPECT_EQ(holders(), 0U);
}

TEST_F(ledger_modes, a_writers_release_lets_in_all_readers_up_to_the_next_writer) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2, shared()));
  blocked(make_claim(3, shared()));
  blocked(make_claim(4));
  blocked(make_claim(5, shared()));
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), (said{"granted 2", "granted 3"}));
  EXPECT_TRUE(last_grant.wanted);
  leave(make_claim(2));
  EXPECT_EQ(pushes(), said{});
  leave(make_claim(3));
  EXPECT_EQ(pushes(), said{"granted 4"});
}

// `wanted` asks a holder to step down; a claim that got in beside it does not wait.
TEST_F(ledger_modes, readers_that_get_in_together_do_not_want_each_other) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2, shared()));
  blocked(make_claim(3, shared()));
  pushes();
  leave(one);
  for (const push& each : out.pushes) EXPECT_FALSE(each.grant->wanted);
}

TEST_F(ledger_modes, permits_are_all_or_nothing_and_never_more_than_there_are) {
  const auto one = make_claim(1, permits(2, 3)), two = make_claim(2, permits(2, 3));
  granted(one);
  blocked(two);
  EXPECT_EQ(granted(make_claim(3, permits(1, 3))).fence.value(), 2U);
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"freed 2"});
  granted(two);
  blocked(make_claim(4, permits(1, 3)));
}

TEST_F(ledger_modes, a_claim_for_many_permits_is_not_overtaken_in_line) {
  const auto one = make_claim(1, permits(3, 3));
  granted(one);
  blocked(make_claim(2, permits(2, 3)));
  blocked(make_claim(3, permits(3, 3)));
  blocked(make_claim(4, permits(1, 3)));
  pushes();
  leave(one);
  EXPECT_EQ(pushes(), said{"granted 2"});
  leave(make_claim(2));
  EXPECT_EQ(pushes(), said{"granted 3"});
}

TEST_F(ledger_modes, permits_come_back_once) {
  const auto one = make_claim(1, permits(1, 2)), two = make_claim(2, permits(1, 2));
  granted(one);
  granted(two);
  leave(one);
  leave(one);
  granted(make_claim(3, permits(1, 2)));
  blocked(make_claim(4, permits(1, 2)));
}

TEST_F(ledger_modes, the_first_claim_fixes_max_while_anybody_holds_or_waits) {
  const auto one = make_claim(1, permits(1, 2));
  granted(one);
  const auto answer = attempt(make_claim(2, permits(1, 3)));
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error(), errc::conflict);
  EXPECT_NE(answer.error().detail.find('2'), std::string::npos);
  EXPECT_NE(answer.error().detail.find('3'), std::string::npos);
  leave(one);
  granted(make_claim(2, permits(1, 3)));
}

TEST_F(ledger_modes, more_permits_than_there_are_is_invalid) {
  EXPECT_EQ(refused(make_claim(1, permits(4, 3))), errc::invalid);
  EXPECT_EQ(refused(make_claim(1, permits(0, 3))), errc::invalid);
  EXPECT_TRUE(book.empty());
}

TEST_F(ledger_modes, a_lock_is_no_semaphore_while_a_claim_lives) {
  const auto one = make_claim(1), two = make_claim(2, permits(1, 1));
  granted(one);
  EXPECT_EQ(refused(two), errc::name_conflict);
  leave(one);
  granted(two);
  EXPECT_EQ(refused(one), errc::name_conflict);
  EXPECT_EQ(refused(make_claim(3, shared())), errc::name_conflict);
}

TEST_F(ledger_modes, a_latch_is_no_lock_and_a_lock_is_no_latch) {
  const auto one = make_claim(1);
  const spi::latch_change set{spi::latch_change::kind::set, 2, id_of(90), 1h};
  granted(one);
  EXPECT_EQ(book.change_latch(now, one->resource, set, out).error(), errc::name_conflict);
  EXPECT_EQ(book.read_latch(now, one->resource, out).error(), errc::name_conflict);
  pass(10s);
  ASSERT_TRUE(book.change_latch(now, one->resource, set, out).has_value());
  ASSERT_EQ(out.latches.size(), 1U);
  EXPECT_EQ(refused(one), errc::name_conflict);
  pass(1h);
  granted(one);
}

TEST_F(ledger_modes, a_downgrade_gets_a_new_fence_and_lets_readers_in_but_no_writer) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2, shared()));
  blocked(make_claim(3));
  pushes();
  pass(2ms);
  const auto answer = change(one, spi::mode::shared);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->fence.value(), 2U);
  EXPECT_EQ(answer->ttl, 10s);
  EXPECT_EQ(pushes(), said{"granted 2"});
  EXPECT_EQ(last_grant.fence.value(), 3U);
  const auto again = change(one, spi::mode::shared);
  EXPECT_EQ(again->fence.value(), 2U);
  EXPECT_EQ(granted(one).fence.value(), 2U);
}

TEST_F(ledger_modes, a_downgrade_lets_no_reader_past_a_writer_that_came_before) {
  const auto one = make_claim(1);
  granted(one);
  blocked(make_claim(2));
  blocked(make_claim(3, shared()));
  pushes();
  ASSERT_TRUE(change(one, spi::mode::shared).has_value());
  EXPECT_EQ(pushes(), said{});
}

TEST_F(ledger_modes, the_sole_reader_may_upgrade) {
  const auto one = make_claim(1, shared());
  granted(one);
  blocked(make_claim(2));
  const auto answer = change(one, spi::mode::exclusive);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->fence.value(), 2U);
  EXPECT_TRUE(answer->wanted);
  blocked(make_claim(3, shared()));
  EXPECT_EQ(change(one, spi::mode::exclusive)->fence.value(), 2U);
}

// Two readers that waited for each other to leave would wait forever.
TEST_F(ledger_modes, an_upgrade_beside_another_reader_fails_at_once) {
  const auto one = make_claim(1, shared()), two = make_claim(2, shared());
  granted(one);
  granted(two);
  EXPECT_EQ(change(one, spi::mode::exclusive).error(), errc::would_deadlock);
  EXPECT_EQ(change(two, spi::mode::exclusive).error(), errc::would_deadlock);
  leave(two);
  EXPECT_TRUE(change(one, spi::mode::exclusive).has_value());
}

TEST_F(ledger_modes, what_is_not_held_cannot_change) {
  const auto one = make_claim(1), two = make_claim(2);
  EXPECT_EQ(change(one, spi::mode::shared).error(), errc::lost);
  granted(one);
  blocked(two);
  EXPECT_EQ(change(two, spi::mode::shared).error(), errc::lost);
  pass(10s);
  EXPECT_EQ(change(one, spi::mode::shared).error(), errc::lost);
  const auto three = make_claim(3, {.mode = spi::mode::permit, .name = "semaphore"});
  granted(three);
  EXPECT_EQ(change(three, spi::mode::shared).error(), errc::invalid);
}

}  // namespace holdfast::memory
