// Release and failure, seen by the caller: what is answered, what continues in the background,
// and that different outcomes have different names.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

class engine_release : public ::testing::Test {
 protected:
  engine_bench bench;

  std::string log() { return bench.store->take_log(); }
  question_ptr held(const std::string& name = "stock") {
    auto asked = bench.ask(name);
    bench.grant(++last_fence);
    return asked;
  }

  std::uint64_t last_fence = 0;
};

TEST_F(engine_release, answers_what_the_engine_said) {
  // Broken: a release that found nothing looks like one that worked.
  const auto kept = held("kept");
  const auto said = bench.release(*kept);
  EXPECT_EQ(*said, "nothing yet");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "ok");

  const auto taken = held("taken");
  const auto lost = bench.release(*taken);
  bench.store->answer_leave(spi::departure::gone);
  EXPECT_EQ(*lost, "lost");
}

TEST_F(engine_release, a_second_release_is_refused_without_a_request) {
  // Broken: releasing twice frees the lock of the next holder.
  const auto holder = held();
  bench.release(*holder);
  bench.store->answer_leave(spi::departure::was_holder);
  log();
  EXPECT_EQ(*bench.release(*holder), "not held");
  EXPECT_EQ(log(), "");
}

TEST_F(engine_release, of_what_was_revoked_gives_it_back_at_once) {
  // Broken: the holder has stopped and reports it, and the lock stays idle until its lease ends.
  const auto holder = held();
  bench.store->wakeup_of("a").gone({errc::lost, "revoked"});
  bench.runtime->run_ready();
  log();
  const auto said = bench.release(*holder);
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "ok");
  EXPECT_EQ(*bench.release(*holder), "not held");
}

TEST_F(engine_release, of_what_was_revoked_and_has_ended_since_sends_nothing) {
  // Broken: a sufficiently late withdrawal could affect what others have.
  const auto holder = held();
  bench.store->wakeup_of("a").gone({errc::lost, "revoked"});
  bench.runtime->run_for(std::chrono::minutes(1));
  log();
  EXPECT_EQ(*bench.release(*holder), "lost");
  EXPECT_EQ(log(), "");
}

TEST_F(engine_release, of_what_was_never_sent_is_refused) {
  // Broken: a try at an engine that refuses connections left its claim for thirty seconds.
  bench.ask("stock", std::chrono::seconds(0));
  bench.store->answer_attempt(
      tl::unexpected(error{errc::unavailable, "connect: Connection refused", true}));
  bench.runtime->run_ready();
  EXPECT_EQ(bench.engine->live_claims(), 0U);
}

TEST_F(engine_release, the_end_of_a_lease_releases_and_throws_nothing) {
  // Broken: an exception out of a destructor ends the program (redis-plus-plus#563).
  static_assert(std::is_nothrow_destructible_v<core::hold>);
  static_assert(noexcept(std::declval<core::hold&>().release()));
  auto holder = held();
  log();
  holder->granted.reset();
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(no_answer<spi::departure>());
  bench.runtime->run_ready();
  EXPECT_EQ(bench.events->count(event_kind::release_pending), 1U);  // the hook of the silent path
}

TEST_F(engine_release, one_without_an_answer_goes_on_until_it_is_confirmed) {
  // Broken: the local state is dropped, and the lock stays until its ttl (curator#1193).
  auto holder = held();
  const auto said = bench.release(*holder);
  bench.store->answer_leave(no_answer<spi::departure>());
  EXPECT_EQ(*said, "unavailable");
  log();
  bench.runtime->run_for(1s);
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(no_answer<spi::departure>());
  bench.runtime->run_for(1s);
  EXPECT_EQ(log(), "leave a");
  EXPECT_EQ(bench.engine->live_claims(), 1U);
  bench.store->answer_leave(spi::departure::gone);
  EXPECT_EQ(bench.engine->live_claims(), 0U);
  bench.runtime->run_for(100s);
  EXPECT_EQ(log(), "");
  EXPECT_EQ(*said, "unavailable");  // answered once
}

TEST_F(engine_release, one_that_nobody_hears_ends_with_the_ttl_and_is_reported) {
  // Broken: it is repeated forever, or given up silently.
  auto holder = held();
  holder->granted.reset();
  while (bench.engine->live_claims() > 0) {
    bench.store->answer_leave(no_answer<spi::departure>());
    bench.runtime->run_for(1s);
    ASSERT_LT(bench.runtime->now(), at(60s));
  }
  EXPECT_GE(bench.runtime->now(), at(30s));
  EXPECT_EQ(bench.events->count(event_kind::release_abandoned), 1U);
}

TEST_F(engine_release, the_clean_up_of_a_cancelled_wait_has_a_deadline_of_its_own) {
  // Broken: the caller's cancelled context is used for the withdrawal too, which then does nothing
  // until the ttl (redsync).
  const auto asked = bench.ask("stock", 2s);
  bench.store->answer_attempt(blocked_in_line(0s));
  asked->handle->cancel();
  EXPECT_EQ(asked->state(), "cancelled");
  ASSERT_EQ(bench.store->leaves.size(), 1U);
  EXPECT_EQ(bench.store->leaves.front().context.deadline, bench.runtime->now() + 5s);
}

TEST_F(engine_release, the_clean_up_of_a_timed_out_wait_has_a_deadline_of_its_own) {
  // Broken: the same at the end of the caller's wait.
  const auto asked = bench.ask("stock", 2s);
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.runtime->run_for(2s);
  for (std::size_t left = bench.store->attempts.size(); left > 0; --left) {
    bench.store->answer_attempt(blocked_in_line(2s));
  }
  EXPECT_EQ(asked->state(), "timed out");
  ASSERT_EQ(bench.store->leaves.size(), 1U);
  EXPECT_EQ(bench.store->leaves.front().context.deadline, bench.runtime->now() + 5s);
}

TEST_F(engine_release, whatever_the_engine_answers_to_a_cancelled_wait_is_given_back) {
  // Broken: interrupting a waiter leaves a lock that is renewed for nobody (redisson#4368).
  const auto asked = bench.ask();
  asked->handle->cancel();
  bench.grant(7);
  EXPECT_EQ(asked->state(), "cancelled");
  EXPECT_EQ(log(), "attempt a, leave+tombstone a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(bench.engine->live_claims(), 0U);
}

TEST_F(engine_release, different_failures_have_different_names) {
  // Broken: releasing an expired lock and failing to acquire are the same error (node-redlock#168).
  const auto busy = bench.ask("busy", 0s);
  bench.store->answer_attempt(blocked_outside());
  EXPECT_EQ(busy->state(), "busy");

  const auto late = bench.ask("late", 1ms);
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.runtime->run_for(1ms);
  EXPECT_EQ(late->state(), "timed out");
  bench.store->answer_leave(spi::departure::was_waiting);

  const auto cancelled = bench.ask("cancelled");
  cancelled->handle->cancel();
  EXPECT_EQ(cancelled->state(), "cancelled");
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.store->answer_leave(spi::departure::was_waiting);

  const auto down = bench.ask("down", 0s);
  bench.store->answer_attempt(no_answer<spi::outcome>());
  EXPECT_EQ(down->state(), "unavailable");
  bench.store->answer_leave(spi::departure::gone);

  const auto gone = held("gone");
  bench.store->wakeup_of("e").gone({errc::lost, "by force"});
  const auto forced = bench.release(*gone);
  bench.store->answer_leave(spi::departure::gone);
  EXPECT_EQ(*forced, "lost");

  const auto pending = held("pending");
  const auto unheard = bench.release(*pending);
  bench.store->answer_leave(no_answer<spi::departure>());
  EXPECT_EQ(*unheard, "unavailable");
  EXPECT_EQ(*bench.release(*pending), "not held");
}

TEST_F(engine_release, a_try_after_a_release_does_not_overtake_it) {
  // Broken: a thread that releases a lock and tries it again is told that it is busy, because of
  // its own hold, whenever another thread is still processing the answer to that hold.
  for (const bool fair : {false, true}) {
    core::request again = request_for("stock", 0s);
    again.lock.fair = fair;
    question_ptr tried;
    bench.engine->acquire(request_for("stock"), [&](result<std::shared_ptr<core::hold>> answer) {
      answer.value()->release();
      tried = bench.ask(again);
    });
    log();
    bench.grant(++last_fence);
    EXPECT_EQ(log(), fair ? "leave c, attempt d" : "leave a, attempt b");
    bench.store->answer_leave(spi::departure::was_holder);
    bench.grant(++last_fence);
    EXPECT_TRUE(tried->granted != nullptr);
    bench.release(*tried);
    bench.store->answer_leave(spi::departure::was_holder);
    EXPECT_EQ(bench.engine->live_claims(), 0U);
  }
}

TEST_F(engine_release, a_try_after_a_wait_does_not_meet_its_own_place_in_the_queue) {
  // Broken: a fair try right after a wait that timed out, or was cancelled, is told that the lock
  // is busy, because of the claim that gave up: nobody else waits, and it may be free.
  for (const bool cancelled : {false, true}) {
    core::request waits = request_for("stock", 1s);
    waits.lock.fair = true;
    core::request tries = request_for("stock", 0s);
    tries.lock.fair = true;
    question_ptr tried;
    const auto waiting =
        bench.engine->acquire(waits, [&](const result<std::shared_ptr<core::hold>>& answer) {
          EXPECT_FALSE(answer);
          tried = bench.ask(tries);
        });
    bench.store->answer_attempt(blocked_in_line(0s));
    log();
    if (cancelled) {
      waiting->cancel();
    } else {
      bench.runtime->run_for(1s);
      while (bench.store->answer_renewal(std::vector<spi::renewal>(1))) {
      }
      bench.store->answer_attempt(blocked_in_line(1s));
    }
    const std::string seen = log();
    const std::string last = cancelled ? "leave c, attempt d" : "leave a, attempt b";
    EXPECT_TRUE(seen.ends_with(last)) << seen;
    ASSERT_TRUE(tried != nullptr);
    bench.store->answer_leave(spi::departure::was_waiting);
    bench.grant(++last_fence);
    EXPECT_TRUE(tried->granted != nullptr);
    bench.release(*tried);
    bench.store->answer_leave(spi::departure::was_holder);
    EXPECT_EQ(bench.engine->live_claims(), 0U);
  }
}

TEST_F(engine_release, after_a_release_the_loss_is_never_reported) {
  // Broken: a stop callback fires for a lease that was released long ago.
  const auto holder = held();
  const std::stop_token lost = holder->granted->lost();
  bench.release(*holder);
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  bench.runtime->run_for(60s);
  EXPECT_FALSE(lost.stop_requested());
}

TEST_F(engine_release, a_lease_that_was_lost_before_anybody_asked_says_so) {
  // Broken: lost() requested after the loss never fires.
  const auto holder = held();
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  EXPECT_TRUE(holder->granted->lost().stop_requested());
  EXPECT_EQ(holder->granted->valid_until(), time_point::min());
}

TEST_F(engine_release, a_watch_gets_what_the_attempt_saw) {
  // Broken: an engine that watches the blocker does not know which claim that is.
  bench.ask();
  bench.store->answer_attempt(blocked_outside(12s));
  ASSERT_EQ(bench.store->watches.size(), 1U);
  EXPECT_EQ(bench.store->last_seen.blocker, "other:1:job");
  EXPECT_EQ(bench.store->last_seen.recheck_after, 12s);
}

}  // namespace
}  // namespace holdfast::test
