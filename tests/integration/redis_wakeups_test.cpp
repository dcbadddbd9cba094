// What the Redis store keeps for a claim, and for how long.
#include "redis_client_harness.hpp"
#include "stores/redis/open_redis.hpp"
#include "support/redis_server.hpp"
#include "support/silent_wakeup.hpp"

#include <holdfast/spi/store.hpp>

#include <future>
#include <vector>

namespace holdfast::test {
namespace {

class redis_wakeups : public testing::Test {
 protected:
  ~redis_wakeups() override { store->close(); }

  redis_server server;
  const std::shared_ptr<spi::reactor> reactor = spi::make_reactor();
  const std::shared_ptr<spi::store> store = *redis::open_redis(
      *spi::parse_url("redis://127.0.0.1:" + std::to_string(server.port())), reactor, {});
  const spi::resource_id stock{"", "stock"};

  [[nodiscard]] static spi::op_context context() { return {.deadline = clock::now() + ample}; }

  // Takes the lock. The store alone keeps the wakeup.
  spi::claim_ptr take(std::weak_ptr<spi::wakeup>& wakeup) const {
    spi::claim made;
    made.id.bytes[0] = 1;
    made.resource = stock;
    made.ttl = 60s;
    auto claim = std::make_shared<const spi::claim>(std::move(made));
    auto kept = std::make_shared<silent_wakeup>();
    wakeup = kept;
    std::promise<bool> granted;
    store->attempt(claim, std::move(kept), context(), [&](const result<spi::outcome>& answer) {
      granted.set_value(answer && std::holds_alternative<spi::granted>(*answer));
    });
    EXPECT_TRUE(granted.get_future().get());
    return claim;
  }
};

TEST_F(redis_wakeups, a_hold_that_the_server_has_lost_keeps_no_wakeup) {
  // Broken: every lost lease would occupy memory until its client is closed.
  std::weak_ptr<spi::wakeup> wakeup;
  const auto claim = take(wakeup);
  EXPECT_FALSE(wakeup.expired());
  server.cli({"FLUSHALL"});
  std::promise<spi::hold_state> state;
  store->renew({claim}, context(), [&](const result<std::vector<spi::renewal>>& answer) {
    state.set_value(answer ? answer->at(0).state : spi::hold_state::unknown);
  });
  EXPECT_EQ(state.get_future().get(), spi::hold_state::lost);
  EXPECT_TRUE(eventually([&] { return wakeup.expired(); }));
}

TEST_F(redis_wakeups, a_hold_that_is_released_by_force_keeps_no_wakeup) {
  // Broken: as above, for leases that an operator takes away.
  std::weak_ptr<spi::wakeup> wakeup;
  take(wakeup);
  ASSERT_TRUE(eventually([&] {
    return !server.cli({"PUBSUB", "CHANNELS", "holdfast:*"}).empty();
  }));
  std::promise<std::size_t> taken;
  store->revoke(stock, spi::revocation::force, "", context(),
                [&](const result<std::vector<spi::holder>>& answer) {
                  taken.set_value(answer ? answer->size() : 0);
                });
  EXPECT_EQ(taken.get_future().get(), 1U);
  EXPECT_TRUE(eventually([&] { return wakeup.expired(); }));
}

}  // namespace
}  // namespace holdfast::test
