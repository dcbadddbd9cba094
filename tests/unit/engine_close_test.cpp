// Closing a client: everybody is answered, everything is released, and what was not is named.
#include "core/local_queue.hpp"
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

namespace holdfast::test {
namespace {

class engine_close : public ::testing::Test {
 protected:
  engine_bench bench;

  std::string log() { return bench.store->take_log(); }
  // Closes and records what was abandoned, joined by blanks; "open" until then.
  std::shared_ptr<std::string> close(duration limit = 2s) {
    auto said = std::make_shared<std::string>("open");
    bench.engine->close(limit, [said](const core::engine::abandoned& names) {
      *said = "closed";
      for (const std::string& name : names) *said += " " + name;
    });
    return said;
  }
};

TEST_F(engine_close, without_claims_it_is_done_at_once) {
  // Broken: closing an idle client takes two seconds.
  const auto said = close();
  EXPECT_EQ(*said, "closed");
  EXPECT_TRUE(bench.store->closed);
}

TEST_F(engine_close, a_waiter_is_answered_cancelled) {
  // Broken: a blocked caller hangs forever, or the client does.
  const auto seeking = bench.ask("stock");
  const auto in_local_queue = bench.ask("stock");
  const auto in_line = bench.ask("queue");
  bench.store->attempts.back().done(blocked_in_line(0s));
  bench.store->attempts.pop_back();
  const auto said = close();
  EXPECT_EQ(seeking->state(), "cancelled");
  EXPECT_EQ(in_local_queue->state(), "cancelled");
  EXPECT_EQ(in_line->state(), "cancelled");
  EXPECT_EQ(log(), "attempt a, attempt b, leave+tombstone a, leave b");
  EXPECT_EQ(*said, "open");
  bench.store->answer_leave(spi::departure::was_holder);
  bench.store->answer_leave(spi::departure::was_waiting);
  EXPECT_EQ(*said, "closed");
  EXPECT_EQ(bench.engine->live_claims(), 0U);
}

TEST_F(engine_close, waiters_are_cancelled_before_holds_are_released) {
  // Broken: the release of one lets in another of the same client, which is lost at the same
  // moment.
  const auto holder = bench.ask("stock");
  bench.grant(1);
  auto fair = request_for("stock");
  fair.lock.fair = true;
  const auto waiter = bench.ask(fair);
  bench.store->answer_attempt(blocked_in_line(0s));
  log();
  close();
  EXPECT_EQ(log(), "leave b, leave a");
  bench.store->answer_leave(spi::departure::was_waiting);
  bench.store->answer_leave(spi::departure::was_holder);
}

TEST_F(engine_close, a_holder_is_notified_and_released) {
  // Broken: a closed client leaves its locks behind, or its holds stay valid.
  const auto holder = bench.ask("stock");
  bench.grant(1);
  const std::stop_token lost = holder->granted->lost();
  const auto said = close();
  bench.runtime->run_ready();
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_FALSE(holder->granted->valid());
  EXPECT_EQ(log(), "attempt a, leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "closed");
  EXPECT_EQ(*bench.release(*holder), "lost");
}

TEST_F(engine_close, after_its_limit_it_says_what_it_abandoned) {
  // Broken: a dead engine keeps the program from ending; or nobody learns what may be left.
  const auto one = bench.ask("one");
  bench.grant(1);
  const auto two = bench.ask("two");
  bench.grant(2);
  const auto said = close(2s);
  bench.store->answer_leave(spi::departure::was_holder);
  bench.runtime->run_for(1999ms);
  EXPECT_EQ(*said, "open");
  bench.runtime->run_for(1ms);
  EXPECT_EQ(*said, "closed two");
  EXPECT_TRUE(bench.store->closed);
  EXPECT_EQ(bench.engine->live_claims(), 0U);
}

TEST_F(engine_close, a_release_that_was_pending_is_tried_once_more) {
  // Broken: the last chance to free a lock is slept through.
  auto holder = bench.ask("stock");
  bench.grant(1);
  holder->granted.reset();
  bench.store->answer_leave(no_answer<spi::departure>());
  log();
  const auto said = close();
  EXPECT_EQ(log(), "leave a");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "closed");
}

TEST_F(engine_close, afterwards_nothing_is_sent_or_taken) {
  // Broken: a closed client still locks.
  close();
  EXPECT_EQ(bench.ask()->state(), "cancelled");
  bench.runtime->run_for(100s);
  EXPECT_EQ(log(), "");
}

TEST_F(engine_close, an_acquisition_that_starts_while_it_closes_is_answered) {
  // Broken: it got past the first check, was added to the list after close() had read it, and its
  // caller waits forever.
  auto asked = std::make_shared<question>();
  const auto acquiring = std::make_shared<core::acquisition>(
      bench.engine, request_for("stock"), bench.runtime->now(), nullptr,
      [asked](result<std::shared_ptr<core::hold>> answer) {
        ++asked->answers;
        if (!answer) asked->refusal = answer.error();
      });
  const auto said = close();
  EXPECT_EQ(*said, "closed");
  acquiring->start();
  EXPECT_EQ(asked->state(), "cancelled");
  EXPECT_EQ(bench.engine->live_claims(), 0U);
  EXPECT_EQ(log(), "");
}

TEST_F(engine_close, callers_that_ask_again_from_their_answer_are_refused) {
  // Broken: a loop "cancelled, so try again" keeps a closing client alive.
  int rounds = 0;
  std::function<void()> ask = [&] {
    bench.engine->acquire(request_for("stock"), [&](const result<std::shared_ptr<core::hold>>&) {
      if (++rounds < 10) ask();
    });
  };
  const auto holder = bench.ask("stock");
  bench.grant(1);
  ask();
  const auto said = close();
  EXPECT_EQ(rounds, 10);
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "closed");
}

TEST_F(engine_close, a_second_close_is_harmless) {
  // Broken: an explicit close and the destructor's are one too many.
  const auto holder = bench.ask();
  bench.grant(1);
  const auto first = close();
  const auto second = close();
  EXPECT_EQ(*second, "closed");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*first, "closed");
}

TEST_F(engine_close, a_limit_without_end_is_kept) {
  // Broken: "forever" overflows, and the close ends at once.
  const auto holder = bench.ask();
  bench.grant(1);
  const auto said = close(forever);
  bench.runtime->run_for(100ms);
  EXPECT_EQ(*said, "open");
  bench.store->answer_leave(spi::departure::was_holder);
  EXPECT_EQ(*said, "closed");
}

TEST_F(engine_close, a_lease_may_outlive_its_engine) {
  // Broken: a crash when leases are destroyed after their client.
  const auto holder = bench.ask();
  bench.grant(1);
  close(0s);
  bench.runtime->run_for(1s);
  bench.engine.reset();
  EXPECT_FALSE(holder->granted->valid());
  EXPECT_EQ(*bench.release(*holder), "lost");
}

TEST_F(engine_close, a_thread_that_ended_inside_a_recursive_mutex_keeps_nothing) {
  // Broken: the queue, the engine, its threads and its connections stay, though all objects are gone.
  const auto asked = bench.ask("stock");
  bench.grant(1);
  auto queue = bench.engine->local_queue_of({"", "stock"});
  queue->reentry().begin(7, std::exchange(asked->granted, nullptr), queue);
  const std::weak_ptr<core::local_queue> watched = queue;
  bench.engine->close(2s, [](const core::engine::abandoned&) {});
  bench.store->answer_leave(spi::departure::was_holder);
  asked->handle.reset();
  queue.reset();
  bench.runtime->run_ready();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace holdfast::test
