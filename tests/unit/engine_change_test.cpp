// Up- and downgrade, seen by the caller: which mode counts when an answer is lost.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

class engine_change : public ::testing::Test {
 protected:
  engine_bench bench;

  question_ptr held(spi::mode mode) {
    auto request = request_for("stock");
    request.mode = mode;
    auto asked = bench.ask(request);
    bench.grant(10);
    return asked;
  }
  static std::shared_ptr<std::string> change(const question& from, spi::mode to) {
    auto said = std::make_shared<std::string>("nothing yet");
    from.granted->change(to, [said](const result<void>& answer) {
      *said = answer ? "ok" : std::string(describe(answer.error().code));
    });
    return said;
  }
};

TEST_F(engine_change, keeps_the_hold_and_gives_a_new_fence) {
  // Broken: the resource cannot tell a writer's number from the reader's it became.
  const auto holder = held(spi::mode::exclusive);
  const auto said = change(*holder, spi::mode::shared);
  EXPECT_TRUE(holder->granted->valid());
  bench.store->answer_change(lease_of(50));
  EXPECT_EQ(*said, "ok");
  EXPECT_EQ(holder->granted->fence(), fence_token(50));
  EXPECT_TRUE(holder->granted->valid());
}

TEST_F(engine_change, refused_changes_nothing) {
  // Broken: an upgrade that would deadlock costs the reader its hold.
  const auto holder = held(spi::mode::shared);
  const auto said = change(*holder, spi::mode::exclusive);
  bench.store->answer_change(failure(errc::would_deadlock, "other readers"));
  EXPECT_EQ(*said, "would deadlock");
  EXPECT_EQ(holder->granted->fence(), fence_token(10));
  EXPECT_TRUE(holder->granted->valid());
}

TEST_F(engine_change, without_an_answer_may_be_repeated) {
  // Broken: a lost answer leaves a lease that can be changed in neither direction.
  const auto holder = held(spi::mode::exclusive);
  change(*holder, spi::mode::shared);
  bench.store->answer_change(no_answer<spi::granted>());
  const auto again = change(*holder, spi::mode::shared);
  bench.store->answer_change(lease_of(50));
  EXPECT_EQ(*again, "ok");
}

TEST_F(engine_change, after_a_lost_downgrade_no_upgrade_is_granted) {
  // Broken: the downgrade arrives late, after the upgrade, and lets readers in beside a writer.
  const auto holder = held(spi::mode::exclusive);
  change(*holder, spi::mode::shared);
  bench.store->answer_change(no_answer<spi::granted>());
  change(*holder, spi::mode::shared);
  bench.store->answer_change(lease_of(50));
  bench.store->take_log();
  EXPECT_EQ(*change(*holder, spi::mode::exclusive), "unavailable");
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST_F(engine_change, after_a_lost_upgrade_another_may_be_asked_for) {
  // Broken: an answer that was lost keeps a reader from ever writing, though no harm can come of it.
  const auto holder = held(spi::mode::shared);
  change(*holder, spi::mode::exclusive);
  bench.store->answer_change(no_answer<spi::granted>());
  const auto again = change(*holder, spi::mode::exclusive);
  bench.store->answer_change(lease_of(50));
  EXPECT_EQ(*again, "ok");
}

TEST_F(engine_change, of_a_lost_lease_is_refused_without_a_request) {
  // Broken: an ended lease comes back as a reader.
  const auto holder = held(spi::mode::exclusive);
  bench.runtime->pause_for(60s);
  bench.store->take_log();
  EXPECT_EQ(*change(*holder, spi::mode::shared), "lost");
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST_F(engine_change, lets_the_next_writer_of_the_process_queue_at_the_engine) {
  // Broken: a writer waits at the local queue of a process whose holder is a mere reader now, and readers
  // of other processes overtake it.
  const auto holder = held(spi::mode::exclusive);
  const auto writer = bench.ask();
  bench.store->take_log();
  change(*holder, spi::mode::shared);
  EXPECT_EQ(bench.store->take_log(), "attempt b, change a");
}

}  // namespace
}  // namespace holdfast::test
