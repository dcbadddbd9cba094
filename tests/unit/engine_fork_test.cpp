// In a forked child a client is inert: nothing is sent, nothing is released, every call answers.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

TEST(engine_fork, a_childs_calls_answer_cancelled_and_send_nothing) {
  // Broken: the child renews, releases or takes locks through the parent's connection.
  engine_bench bench;
  const auto holder = bench.ask("held");
  bench.grant(1);
  bench.store->take_log();
  bench.runtime->set_forked(true);
  EXPECT_EQ(bench.ask("stock")->state(), "cancelled");
  EXPECT_FALSE(holder->granted->valid());
  EXPECT_EQ(*bench.release(*holder), "cancelled");
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST(engine_fork, a_childs_copy_of_a_lease_is_lost_and_its_end_releases_nothing) {
  // Broken: the child's destructors free the parent's lock.
  engine_bench bench;
  auto holder = bench.ask("held");
  bench.grant(1);
  bench.store->take_log();
  bench.runtime->set_forked(true);
  EXPECT_TRUE(holder->granted->lost().stop_requested());
  holder->granted.reset();
  bench.runtime->run_for(60s);
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST(engine_fork, a_childs_timers_renew_nothing) {
  // Broken: parent and child renew the same claim, and the child continues when the parent dies.
  engine_bench bench;
  const auto holder = bench.ask("held");
  bench.grant(1);
  const auto waiter = bench.ask("stock");
  bench.store->answer_attempt(blocked_in_line(0s));
  bench.store->take_log();
  bench.runtime->set_forked(true);
  bench.runtime->run_for(60s);
  waiter->handle->cancel();
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST(engine_fork, closing_in_a_child_ends_without_touching_the_store) {
  // Broken: the child shuts the parent's sockets down.
  engine_bench bench;
  const auto holder = bench.ask("held");
  bench.grant(1);
  bench.store->take_log();
  bench.runtime->set_forked(true);
  bool closed = false;
  bench.engine->close(2s, [&closed](const core::engine::abandoned&) { closed = true; });
  EXPECT_TRUE(closed);
  EXPECT_FALSE(bench.store->closed);
  EXPECT_EQ(bench.store->take_log(), "");
}

}  // namespace
}  // namespace holdfast::test
