// A client queues at a SQL server only once the others can notify it.
#if defined(HOLDFAST_WITH_POSTGRESQL) || defined(HOLDFAST_WITH_MARIADB)

#include "integration/sql_world.hpp"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <variant>

namespace holdfast::test {
namespace {

class sql_listening : public testing::TestWithParam<sql_setup> {
 protected:
  static spi::claim_ptr fair_claim(std::uint8_t id) {
    auto claim = std::make_shared<spi::claim>();
    claim->id.bytes[0] = id;
    claim->resource = {"", "stock"};
    claim->fair = true;
    claim->ttl = 60s;
    return claim;
  }

  // What is answered before this is answered has been answered.
  static void inspected(spi::store& store) {
    std::promise<void> seen;
    store.inspect({"", "stock"}, {.deadline = clock::now() + patience},
                  [&](const result<spi::resource_state>& state) {
                    EXPECT_THAT(state, succeeds());
                    seen.set_value();
                  });
    seen.get_future().get();
  }

  const std::unique_ptr<sql_world> world_ = GetParam().make(true);
};

INSTANTIATE_TEST_SUITE_P(on, sql_listening, testing::ValuesIn(sql_setups({"lease"})), name_of_sql);

TEST_P(sql_listening, a_fair_waiter_keeps_its_turn_though_its_client_is_new) {
  // Broken: it is passed over by those behind it, since its client cannot be notified yet.
  const auto first = world_->store({});
  const auto found = std::make_shared<flag>();
  const auto second = world_->late_store(found);
  const auto third = world_->store({});
  ASSERT_THAT(attempted(*first, fair_claim(1)), succeeds());
  inspected(*second);
  reply<spi::outcome> waits;
  second->attempt(fair_claim(2), std::make_shared<silent_wakeup>(),
                  {.deadline = clock::now() + patience}, waits.callback());
  inspected(*second);
  EXPECT_FALSE(arrives(waits.future, 0s));  // it is not in line before it can be notified
  found->raise();
  const auto blocked = waits.future.get();
  ASSERT_THAT(blocked, succeeds());
  EXPECT_TRUE(std::get<spi::blocked>(*blocked).queued);
  EXPECT_TRUE(std::get<spi::blocked>(*attempted(*third, fair_claim(3))).queued);
  left(*first, fair_claim(1));
  const client inspector = open_client(world_->url());
  const auto now = inspector.inspect("stock");
  ASSERT_THAT(now, succeeds());
  ASSERT_EQ(now->holders.size(), 1U);
  EXPECT_EQ(now->holders.front().claim, spi::public_id(fair_claim(2)->id));
  for (const auto& each : {first, second, third}) each->close();
}

TEST_P(sql_listening, each_waits_for_its_own_time_until_its_client_can_be_notified) {
  // Broken: when one client's time is up, all the others queue before they can be notified.
  const auto first = world_->store({});
  const auto found = std::make_shared<flag>();
  const auto second = world_->late_store(found);
  ASSERT_THAT(attempted(*first, fair_claim(1)), succeeds());
  inspected(*second);
  reply<spi::outcome> waits;
  second->attempt(fair_claim(2), std::make_shared<silent_wakeup>(),
                  {.deadline = clock::now() + patience}, waits.callback());
  // Broken: a wait that is over says that the server does not answer.
  reply<spi::outcome> soon;
  const auto now = clock::now();
  second->attempt(fair_claim(3), std::make_shared<silent_wakeup>(),
                  {.deadline = now + patience, .reach_by = now + 100ms}, soon.callback());
  ASSERT_TRUE(arrives(soon.future, patience / 4));
  const auto blocked = soon.future.get();
  ASSERT_THAT(blocked, succeeds());
  EXPECT_TRUE(std::holds_alternative<spi::blocked>(*blocked));
  inspected(*second);
  EXPECT_FALSE(arrives(waits.future, 0s));
  found->raise();
  ASSERT_THAT(waits.future.get(), succeeds());
  for (const auto& each : {first, second}) each->close();
}

}  // namespace
}  // namespace holdfast::test

#endif
