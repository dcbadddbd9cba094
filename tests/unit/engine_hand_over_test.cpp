// Local hand-over: a claim is passed on inside the process, within limits, with fences that grow.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

class engine_hand_over : public ::testing::Test {
 protected:
  explicit engine_hand_over(core::engine_settings settings = {}) : bench(std::move(settings)) {}

  engine_bench bench;

  std::string log() { return bench.store->take_log(); }

  // Granted, and another process waits already.
  void grant_wanted(std::uint64_t fence) {
    auto grant = lease_of(fence);
    grant.wanted = true;
    bench.store->answer_attempt(spi::outcome(grant));
  }

  // A claim that was granted while another process waits.
  question_ptr contended(std::uint64_t fence = 100) {
    auto first = bench.ask();
    grant_wanted(fence);
    log();
    return first;
  }

  static core::engine_settings kept_at_once() {
    core::engine_settings settings;
    settings.limit.keep_seldom = 1;
    return settings;
  }
};

class engine_turn : public engine_hand_over {
 protected:
  engine_turn() : engine_hand_over(kept_at_once()) {}
};

TEST_F(engine_hand_over, the_next_thread_gets_the_claim_and_the_next_fence_without_the_engine) {
  // Broken: every change of threads costs two round trips; or two holders have one fence.
  auto first = bench.ask();
  bench.grant(100);
  auto second = bench.ask();
  const auto third = bench.ask();
  first->granted.reset();
  EXPECT_EQ(second->state(), "granted 101");
  EXPECT_EQ(third->state(), "waiting");
  second->granted.reset();
  EXPECT_EQ(third->state(), "granted 102");
  EXPECT_TRUE(third->granted->valid());
  EXPECT_EQ(log(), "attempt a");
}

TEST_F(engine_hand_over, the_grant_reserves_as_many_fences_as_can_be_passed_on) {
  // Broken: a handed-over fence equals one that the engine gives to another process.
  bench.ask();
  ASSERT_EQ(bench.store->attempts.size(), 1U);
  EXPECT_EQ(bench.store->attempts.front().claim->fence_block, 33U);
}

TEST_F(engine_hand_over, it_is_passed_on_thirty_two_times_at_most) {
  // Broken: one process keeps the lock from all others.
  std::vector<question_ptr> all;
  for (int i = 0; i < 40; ++i) all.push_back(bench.ask());
  bench.grant(100);
  std::size_t served = 0;
  while (all[served]->granted) all[served++]->granted.reset();
  EXPECT_EQ(served, 33U);  // the granted one, and 32 more
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
}

TEST_F(engine_hand_over, it_is_passed_on_for_ten_milliseconds_at_most) {
  // Broken: the same with long holds.
  auto first = bench.ask();
  bench.grant(100);
  auto second = bench.ask();
  const auto third = bench.ask();
  bench.runtime->run_for(9ms);
  first->granted.reset();
  EXPECT_EQ(second->state(), "granted 101");
  bench.runtime->run_for(1ms);
  second->granted.reset();
  EXPECT_EQ(third->state(), "waiting");
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
}

TEST_F(engine_hand_over, it_stops_after_a_turn_when_another_process_waits) {
  // Broken: a remote waiter is starved by the threads of one process.
  auto first = bench.ask();
  bench.grant(100);
  auto second = bench.ask();
  const auto third = bench.ask();
  bench.store->wakeup_of("a").wanted();
  bench.runtime->run_for(999us);
  first->granted.reset();
  EXPECT_EQ(second->state(), "granted 101");
  bench.runtime->run_for(1us);
  second->granted.reset();
  EXPECT_EQ(third->state(), "waiting");
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
}

TEST_F(engine_hand_over, a_grant_that_says_that_others_wait_has_a_turn_from_its_start) {
  // Broken: what the grant itself says counts only after it has been handed over once.
  auto first = bench.ask();
  const auto second = bench.ask();
  auto grant = lease_of(100);
  grant.wanted = true;
  bench.store->answer_attempt(spi::outcome(grant));
  bench.runtime->run_for(1ms);
  first->granted.reset();
  EXPECT_EQ(second->state(), "waiting");
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
}

TEST_F(engine_hand_over, the_holder_can_ask_whether_others_wait) {
  // Broken: a batch job never learns that somebody waits.
  const auto holder = bench.ask();
  bench.grant(100);
  const std::stop_token before = holder->granted->wanted();
  EXPECT_FALSE(before.stop_requested());
  bench.store->wakeup_of("a").wanted();
  bench.runtime->run_ready();
  EXPECT_TRUE(before.stop_requested());
  EXPECT_TRUE(holder->granted->wanted().stop_requested());
}

TEST_F(engine_hand_over, only_equal_terms_are_passed_on) {
  // Broken: a caller that asked for a ttl of a minute gets one of thirty seconds, or another's
  // payload.
  std::vector<core::request> others(5, request_for("stock"));
  others[0].lock.ttl = 60s;
  others[1].lock.lock_delay = 1s;
  others[2].lock.notice = 1s;
  others[3].lock.renew = renew::never;
  others[4].payload = "leader 7";
  for (const auto& request : others) {
    engine_bench fresh;
    auto first = fresh.ask();
    fresh.grant(100);
    const auto second = fresh.ask(request);
    first->granted.reset();
    EXPECT_EQ(second->state(), "waiting");
    EXPECT_EQ(fresh.store->take_log(), "attempt a, leave a, attempt b");
  }
}

TEST_F(engine_hand_over, what_is_not_renewed_is_not_passed_on) {
  // Broken: the second holder has less time than it asked for.
  auto request = request_for("stock");
  request.lock.renew = renew::never;
  auto first = bench.ask(request);
  bench.grant(100);
  const auto second = bench.ask(request);
  first->granted.reset();
  EXPECT_EQ(second->state(), "waiting");
}

TEST_F(engine_hand_over, where_no_waiters_are_reported_the_name_rests_between_two_claims) {
  // Broken: others, which ask now and then, never find it free.
  bench.store->capabilities.reports_waiters = false;
  bench.store->capabilities.pushes = false;
  auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  bench.runtime->run_for(20ms);
  first->granted.reset();
  bench.store->answer_leave(spi::departure::was_holder);
  bench.runtime->run_for(19ms);
  EXPECT_EQ(log(), "attempt a, leave a");
  bench.runtime->run_for(11ms);
  EXPECT_EQ(log(), "attempt b");
  bench.grant(200);
  EXPECT_EQ(second->state(), "granted 200");
}

TEST_F(engine_hand_over, a_try_is_not_kept_out_by_a_rest) {
  // Broken: busy, although nobody has it.
  bench.store->capabilities.reports_waiters = false;
  auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  bench.runtime->run_for(20ms);
  first->granted.reset();
  bench.store->answer_leave(spi::departure::was_holder);
  auto tried = bench.ask("stock", 0s);
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
  bench.grant(200);
  EXPECT_EQ(tried->state(), "granted 200");
  bench.runtime->run_for(1s);
  EXPECT_EQ(second->state(), "waiting");
  tried->granted.reset();
  bench.store->answer_leave(spi::departure::was_holder);
  bench.runtime->run_for(1s);
  bench.grant(300);
  EXPECT_EQ(second->state(), "granted 300");
}

TEST_F(engine_hand_over, a_name_in_use_for_a_moment_only_does_not_rest) {
  // Broken: every change of threads costs ten milliseconds.
  bench.store->capabilities.reports_waiters = false;
  std::vector<question_ptr> all;
  for (int i = 0; i < 40; ++i) all.push_back(bench.ask());
  bench.grant(100);
  for (std::size_t i = 0; i < 33; ++i) all[i]->granted.reset();
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
}

TEST_F(engine_hand_over, an_offer_is_passed_on_and_still_confirmed) {
  // Broken: the next one has two seconds instead of thirty.
  auto first = bench.ask();
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.store->wakeup_of("a").notify(offer(100, 0s));
  ASSERT_EQ(first->state(), "granted 100");
  const auto second = bench.ask();
  first->granted.reset();
  EXPECT_EQ(second->state(), "granted 101");
  log();
  bench.runtime->run_for(100ms);
  EXPECT_EQ(log(), "renew a");
  bench.store->answer_renewal(std::vector{renewed(100)});
  bench.runtime->run_for(5s);
  EXPECT_TRUE(second->granted->valid());
}

TEST_F(engine_hand_over, it_can_be_switched_off) {
  // Broken: an option without effect.
  core::engine_settings settings;
  settings.hand_over_locally = false;
  engine_bench strict(settings);
  auto first = strict.ask();
  EXPECT_EQ(strict.store->attempts.front().claim->fence_block, 1U);
  strict.grant(100);
  const auto second = strict.ask();
  first->granted.reset();
  EXPECT_EQ(second->state(), "waiting");
}

TEST_F(engine_hand_over, a_loss_reaches_the_current_holder) {
  // Broken: the former holder is notified, and the present one continues.
  const auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  const std::stop_token first_lost = first->granted->lost();
  first->granted->release();
  ASSERT_EQ(second->state(), "granted 101");
  const std::stop_token second_lost = second->granted->lost();
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  bench.runtime->run_ready();
  EXPECT_TRUE(second_lost.stop_requested());
  EXPECT_FALSE(second->granted->valid());
  EXPECT_FALSE(first_lost.stop_requested());
}

TEST_F(engine_hand_over, the_former_holder_is_out) {
  // Broken: a handed-over lease still looks valid to its former holder.
  const auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  const auto said = bench.release(*first);
  EXPECT_EQ(*said, "ok");
  EXPECT_EQ(second->state(), "granted 101");
  EXPECT_FALSE(first->granted->valid());
  EXPECT_EQ(*bench.release(*first), "not held");
  EXPECT_TRUE(second->granted->valid());
}

TEST_F(engine_hand_over, a_waiter_cancelled_in_the_meantime_is_passed_over) {
  // Broken: a claim is handed to a caller that is gone, and held by nobody.
  auto first = bench.ask();
  bench.grant(100);
  const auto gone = bench.ask();
  const auto next = bench.ask();
  gone->handle->cancel();
  first->granted.reset();
  EXPECT_EQ(gone->state(), "cancelled");
  EXPECT_EQ(next->state(), "granted 101");
}

TEST_F(engine_hand_over, a_changed_claim_is_not_passed_on) {
  // Broken: a downgraded lock, perhaps shared with readers of other processes, is handed over as
  // exclusive although the answer to the downgrade was lost.
  auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  first->granted->change(spi::mode::shared, [](const result<void>&) {});
  bench.store->answer_change(no_answer<spi::granted>());
  first->granted.reset();
  EXPECT_EQ(second->state(), "waiting");
  // Its own claim, in the engine's queue.
  EXPECT_EQ(log(), "attempt a, attempt b, change a, leave a");
}

TEST_F(engine_hand_over, the_claim_is_still_renewed_for_its_current_holder) {
  // Broken: renewal belongs to the first holder and ends with it.
  auto first = bench.ask();
  bench.grant(100);
  const auto second = bench.ask();
  first->granted.reset();
  bench.runtime->run_for(10s);
  EXPECT_EQ(log(), "attempt a, renew a");
  bench.store->answer_renewal(std::vector{renewed(100)});
  bench.runtime->run_for(25s);
  EXPECT_TRUE(second->granted->valid());
  EXPECT_EQ(second->granted->fence(), fence_token(101));
}

TEST_F(engine_turn, one_that_comes_back_within_its_turn_finds_the_claim_kept) {
  // Broken: with two processes that lock and unlock in a loop, each grant costs a change of
  // processes.
  auto first = contended();
  EXPECT_EQ(*bench.release(*first), "ok");
  bench.runtime->run_for(99us);
  auto second = bench.ask();
  EXPECT_EQ(second->state(), "granted 101");
  second->granted.reset();
  auto tried = bench.ask("stock", 0s);
  EXPECT_EQ(tried->state(), "granted 102");
  bench.runtime->run_for(901us);
  EXPECT_EQ(log(), "");
  tried->granted.reset();
  EXPECT_EQ(log(), "leave a");
}

TEST_F(engine_turn, a_kept_claim_is_released_when_its_turn_ends) {
  // Broken: a process keeps the lock for longer than a turn.
  auto first = contended();
  bench.runtime->run_for(950us);
  first->granted.reset();
  bench.runtime->run_for(49us);
  EXPECT_EQ(log(), "");
  bench.runtime->run_for(1us);
  EXPECT_EQ(log(), "leave a");
}

TEST_F(engine_turn, a_kept_claim_is_released_when_nobody_came_back) {
  // Broken: the waiters of other processes get it when it runs out.
  auto first = contended();
  first->granted.reset();
  bench.runtime->run_for(99us);
  EXPECT_EQ(log(), "");
  bench.runtime->run_for(1us);
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  const auto second = bench.ask();
  EXPECT_EQ(log(), "attempt b");
  bench.grant(200);
  EXPECT_EQ(second->state(), "granted 200");
}

TEST_F(engine_hand_over, where_nobody_comes_back_it_is_seldom_kept) {
  // Broken: every release makes the others wait for one that does not come.
  const auto queue = bench.engine->local_queue_of({"", "stock"});  // kept, as by a mutex object
  const auto kept = [&] {
    contended()->granted.reset();
    if (log().empty()) return true;
    bench.store->answer_leave(spi::departure::was_holder);
    return false;
  };
  const auto nobody_comes = [&] {
    bench.runtime->run_for(100us);
    bench.store->answer_leave(spi::departure::was_holder);
  };
  const auto releases_until_kept = [&] {
    int count = 1;
    while (count < 1'000 && !kept()) ++count;
    return count;
  };
  // One that takes the lock once makes nobody wait; one that takes it in a loop is soon found out, even
  // where a hand-over takes milliseconds.
  for (const int expected : {2, 4, 8, 16, 32, 64, 64}) {
    EXPECT_EQ(releases_until_kept(), expected);
    nobody_comes();
  }
  EXPECT_EQ(releases_until_kept(), 64);
  bench.ask()->granted.reset();  // comes back, and the claim is kept again
  EXPECT_EQ(log(), "");
  nobody_comes();
  EXPECT_EQ(releases_until_kept(), 2);
  nobody_comes();
}

TEST_F(engine_turn, nothing_is_kept_that_nobody_waits_for) {
  // Broken: another process's try finds the lock busy although nobody holds it.
  auto first = bench.ask();
  bench.grant(100);
  log();
  first->granted.reset();
  EXPECT_EQ(log(), "leave a");
}

TEST_F(engine_turn, one_that_comes_back_on_other_terms_gets_a_claim_of_its_own) {
  // Broken: it gets a ttl that it did not ask for; or its attempt meets the claim that was kept.
  auto first = contended();
  first->granted.reset();
  auto longer = request_for("stock");
  longer.lock.ttl = 60s;
  const auto second = bench.ask(longer);
  EXPECT_EQ(log(), "leave a, attempt b");
  EXPECT_EQ(second->state(), "waiting");
}

TEST_F(engine_turn, a_kept_claim_that_is_lost_is_not_given_to_anybody) {
  // Broken: a returning caller holds what another process has.
  auto first = contended();
  first->granted.reset();
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  bench.runtime->run_ready();
  const auto second = bench.ask();
  EXPECT_EQ(second->state(), "waiting");
  bench.grant(300);
  EXPECT_EQ(second->state(), "granted 300");
}

TEST_F(engine_turn, closing_releases_a_kept_claim) {
  // Broken: a process that ends leaves the lock to its ttl.
  auto first = contended();
  first->granted.reset();
  bool closed = false;
  bench.engine->close(2s, [&](const core::engine::abandoned& names) { closed = names.empty(); });
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  bench.runtime->run_ready();
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace holdfast::test
