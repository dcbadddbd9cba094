// The local queue: threads of one process queue here, and one claim of theirs goes to the engine.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

class local_queue : public ::testing::Test {
 protected:
  engine_bench bench;

  std::string log() { return bench.store->take_log(); }
  // The holder releases, and the engine confirms.
  void release(question_ptr& from) {
    from->granted.reset();
    bench.store->answer_leave(spi::departure::was_holder);
  }
};

TEST_F(local_queue, one_claim_of_a_process_goes_to_the_engine) {
  // Broken: a thousand threads queue a thousand claims.
  const auto first = bench.ask();
  const auto second = bench.ask();
  const auto third = bench.ask();
  EXPECT_EQ(log(), "attempt a");
  bench.grant(1);
  EXPECT_EQ(first->state(), "granted 1");
  EXPECT_EQ(second->state(), "waiting");
  EXPECT_EQ(third->state(), "waiting");
  EXPECT_EQ(bench.engine->live_claims(), 1U);
}

TEST_F(local_queue, the_first_to_come_is_served_first) {
  // Broken: a thread waits forever while others come and go.
  auto first = bench.ask();
  bench.grant(1);
  std::vector<question_ptr> others;
  for (int i = 0; i < 5; ++i) others.push_back(bench.ask());
  bench.runtime->run_for(1s);  // the budget for local hand-overs is spent
  for (std::size_t turn = 0; turn < others.size(); ++turn) {
    auto& holder = turn == 0 ? first : others[turn - 1];
    release(holder);
    bench.grant(100 + turn * 100);
    for (std::size_t i = 0; i < others.size(); ++i) {
      const bool served = i <= turn;
      EXPECT_EQ(others[i]->answered(), served) << turn << " " << i;
    }
    bench.runtime->run_for(1s);
  }
}

TEST_F(local_queue, a_try_is_busy_at_once_while_somebody_is_inside) {
  // Broken: a try waits, or asks the engine what the process already knows.
  const auto holder = bench.ask();
  EXPECT_EQ(bench.ask("stock", 0s)->state(), "busy");  // sought
  bench.grant(1);
  EXPECT_EQ(bench.ask("stock", 0s)->state(), "busy");  // held
  EXPECT_EQ(log(), "attempt a");
}

TEST_F(local_queue, fair_shared_and_permit_claims_pass_it) {
  // Broken: a fair claim's place in the engine's queue depends on other threads of its process;
  // readers of one process exclude each other.
  const auto holder = bench.ask();
  auto fair = request_for("stock");
  fair.lock.fair = true;
  auto shared = request_for("stock");
  shared.mode = spi::mode::shared;
  auto permit = request_for("stock");
  permit.mode = spi::mode::permit;
  permit.max = 3;
  for (const auto& request : {fair, shared, shared, permit, fair}) bench.ask(request);
  EXPECT_EQ(log(), "attempt a, attempt b, attempt c, attempt d, attempt e, attempt f");
}

TEST_F(local_queue, engines_that_are_always_fair_have_none) {
  // Broken: on ZooKeeper and etcd the order of the engine is not the order of the callers.
  bench.store->capabilities.always_fair = true;
  bench.ask();
  bench.ask();
  EXPECT_EQ(log(), "attempt a, attempt b");
}

TEST_F(local_queue, names_do_not_share_one) {
  // Broken: independent locks wait for each other.
  bench.ask("p");
  bench.ask("p/q");
  auto other_space = request_for("p");
  other_space.resource.space = "shop";
  bench.ask(other_space);
  EXPECT_EQ(log(), "attempt a, attempt b, attempt c");
}

TEST_F(local_queue, a_deadline_in_the_local_queue_is_kept_without_the_engine) {
  // Broken: a timed wait behind another thread never ends.
  const auto holder = bench.ask();
  bench.grant(1);
  const auto waiter = bench.ask("stock", 2s);
  bench.runtime->run_for(2s - 1ms);
  EXPECT_EQ(waiter->state(), "waiting");
  bench.runtime->run_for(1ms);
  EXPECT_EQ(waiter->state(), "timed out");
  EXPECT_EQ(log(), "attempt a");
}

TEST_F(local_queue, a_waiter_that_was_cancelled_in_the_local_queue_leaves_it) {
  // Broken: a cancelled waiter is granted, or holds up those behind it.
  auto holder = bench.ask();
  bench.grant(1);
  const auto cancelled = bench.ask();
  const auto next = bench.ask();
  cancelled->handle->cancel();
  EXPECT_EQ(cancelled->state(), "cancelled");
  bench.runtime->run_for(1s);
  release(holder);
  EXPECT_EQ(log(), "attempt a, leave a, attempt b");
  bench.grant(9);
  EXPECT_EQ(next->state(), "granted 9");
  EXPECT_EQ(cancelled->answers, 1);
}

TEST_F(local_queue, a_failure_inside_lets_the_next_one_try) {
  // Broken: after an error the name is blocked in this process.
  const auto first = bench.ask();
  const auto second = bench.ask();
  bench.store->answer_attempt(failure(errc::denied, "no"));
  EXPECT_EQ(first->state(), "denied");
  EXPECT_EQ(log(), "attempt a, attempt b");
  bench.grant(1);
  EXPECT_EQ(second->state(), "granted 1");
}

TEST_F(local_queue, a_refused_caller_may_try_again_at_once) {
  // Broken: the second try is told "busy" by the first, which has its answer but is still inside.
  question_ptr second;
  auto request = request_for("stock");
  request.wait = 0s;
  bench.engine->acquire(request, [&](const result<std::shared_ptr<core::hold>>& answer) {
    EXPECT_FALSE(answer);
    second = bench.ask("stock", 0s);
  });
  bench.store->answer_attempt(failure(errc::denied, "no"));
  EXPECT_EQ(log(), "attempt a, attempt b");
  bench.grant(1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->state(), "granted 1");
}

TEST_F(local_queue, a_cancellation_inside_lets_the_next_one_try) {
  // Broken: the same after a cancellation.
  const auto first = bench.ask();
  const auto second = bench.ask();
  first->handle->cancel();
  EXPECT_EQ(first->state(), "cancelled");
  // The withdrawal first: the next caller must not meet what it leaves behind.
  EXPECT_EQ(log(), "attempt a, leave+tombstone a, attempt b");
}

TEST_F(local_queue, a_lost_lease_inside_lets_the_next_one_try) {
  // Broken: a lost lease that its owner has not noticed blocks the name for this process.
  const auto first = bench.ask();
  bench.grant(1);
  const auto second = bench.ask();
  bench.store->wakeup_of("a").gone({errc::lost, "by force"});
  bench.runtime->run_ready();
  EXPECT_FALSE(first->granted->valid());
  EXPECT_EQ(log(), "attempt a, attempt b");
  bench.grant(9);
  EXPECT_EQ(second->state(), "granted 9");
}

TEST_F(local_queue, ten_thousand_failures_in_a_row_need_no_stack) {
  // Broken: an engine that refuses everything overflows the stack.
  bench.store->capabilities.engine = "refusing";
  std::vector<question_ptr> all;
  for (int i = 0; i < 10'000; ++i) all.push_back(bench.ask());
  bench.store->close();  // answers what waits, and refuses from now on
  bench.runtime->run_until(at(100ms));
  std::size_t waiting = 0;
  for (const auto& each : all) waiting += each->answered() ? 0 : 1;
  EXPECT_EQ(waiting, all.size());  // an outage is waited out
  bool closed = false;
  bench.engine->close(0s, [&closed](core::engine::abandoned) { closed = true; });
  bench.runtime->run_for(1s);
  EXPECT_TRUE(closed);
  for (const auto& each : all) ASSERT_EQ(each->state(), "cancelled");
}

TEST_F(local_queue, ten_thousand_refusals_in_a_row_need_no_stack) {
  // Broken: each refused caller lets the next one in recursively, ten thousand frames deep.
  std::vector<question_ptr> all;
  for (int i = 0; i < 10'000; ++i) {
    auto request = request_for("stock");
    request.lock.retry = retry_policy::never();
    all.push_back(bench.ask(request));
  }
  bench.store->close();
  for (const auto& each : all) ASSERT_EQ(each->state(), "unavailable");
}

TEST_F(local_queue, a_thread_that_waits_for_itself_is_refused) {
  // Broken: a self-deadlock is silent.
  auto mine = request_for("stock");
  mine.thread = 17;
  const auto holder = bench.ask(mine);
  bench.grant(1);
  bench.ask(mine);
  auto other = request_for("stock");
  other.thread = 18;
  bench.ask(other);
  bench.runtime->run_ready();
  EXPECT_EQ(bench.events->count(event_kind::self_wait), 1U);
}

TEST_F(local_queue, a_gate_that_the_caller_keeps_is_used) {
  // Broken: two lock objects of one name have two local queues.
  const auto kept = bench.engine->local_queue_of({"", "stock"});
  auto request = request_for("stock");
  request.local_queue = kept;
  bench.ask(request);
  bench.ask("stock");
  EXPECT_EQ(log(), "attempt a");
  EXPECT_EQ(bench.engine->local_queue_of({"", "stock"}), kept);
}

}  // namespace
}  // namespace holdfast::test
