// Holds that are bound to a connection: grants and losses in the right order, none from an earlier
// connection.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "stores/sql/bound_claims.hpp"
#include "support/manual_runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// What a holder is notified of, in order.
class listener final : public spi::wakeup {
 public:
  explicit listener(std::vector<std::string>& heard) : heard_(heard) {}
  void notify(std::optional<spi::granted>) noexcept override {}
  void wanted() noexcept override {}
  void gone(const error& why) noexcept override {
    heard_.push_back(why == errc::lost ? "lost" : "something else");
  }

 private:
  std::vector<std::string>& heard_;
};

spi::claim_ptr claim_number(std::uint8_t number, duration lock_delay = {}) {
  auto made = std::make_shared<spi::claim>();
  made->id.bytes[0] = number;
  made->ttl = 1s;
  made->lock_delay = lock_delay;
  return made;
}

class sql_ties : public testing::Test {
 protected:
  [[nodiscard]] bool tie(int life, const spi::claim_ptr& claim) {
    return bound_claims_.tie(life, claim, std::make_shared<listener>(heard_),
                             [&] { heard_.emplace_back("granted"); });
  }
  sql::bound_claims bound_claims_;
  std::vector<std::string> heard_;
};

TEST_F(sql_ties, a_hold_whose_release_is_not_answered_is_none_and_still_to_be_given_back) {
  // Broken: the release is asked for again and refused, and its connection goes on with the lock.
  bound_claims_.begin(7);
  const spi::claim_ptr claim = claim_number(1);
  ASSERT_TRUE(tie(7, claim));
  EXPECT_TRUE(bound_claims_.untie(claim->id, false));
  EXPECT_EQ(bound_claims_.count(), 0U);
  EXPECT_TRUE(bound_claims_.untie(claim->id, false));
  EXPECT_TRUE(bound_claims_.untie(claim->id));
  EXPECT_FALSE(bound_claims_.untie(claim->id, false));
  ASSERT_TRUE(tie(7, claim));
  EXPECT_TRUE(bound_claims_.untie(claim->id, false));
  bound_claims_.end({errc::unavailable, "cut"});
  EXPECT_FALSE(bound_claims_.untie(claim->id));
}

TEST_F(sql_ties, the_end_of_the_connection_is_reported_to_all_that_it_carried) {
  // Broken: a hold stays valid although its lock ended with its connection.
  bound_claims_.begin(7);
  ASSERT_TRUE(tie(7, claim_number(1)));
  ASSERT_TRUE(tie(7, claim_number(2)));
  ASSERT_TRUE(tie(7, claim_number(3)));
  bound_claims_.untie(claim_number(3)->id);
  EXPECT_EQ(bound_claims_.count(), 2U);
  bound_claims_.end({errc::unavailable, "cut"});
  EXPECT_THAT(heard_, testing::ElementsAre("granted", "granted", "granted", "lost", "lost"));
  EXPECT_EQ(bound_claims_.count(), 0U);
}

TEST_F(sql_ties, an_answer_of_a_former_life_is_no_grant) {
  // Broken: an answer that is read late is trusted although its session is gone.
  bound_claims_.begin(7);
  bound_claims_.end({errc::unavailable, "cut"});
  EXPECT_FALSE(tie(7, claim_number(1)));
  bound_claims_.begin(8);
  EXPECT_FALSE(tie(7, claim_number(1)));
  EXPECT_FALSE(tie(0, claim_number(1)));
  EXPECT_TRUE(heard_.empty());
  EXPECT_TRUE(tie(8, claim_number(1)));
}

TEST_F(sql_ties, an_end_that_comes_while_a_grant_is_delivered_is_reported_after_it) {
  // Broken: the loss overtakes the grant, and the grant is valid for a ttl.
  bound_claims_.begin(7);
  ASSERT_TRUE(bound_claims_.tie(7, claim_number(1), std::make_shared<listener>(heard_), [&] {
    bound_claims_.end({errc::unavailable, "cut"});
    EXPECT_TRUE(heard_.empty());
    heard_.emplace_back("granted");
  }));
  EXPECT_THAT(heard_, testing::ElementsAre("granted", "lost"));
}

TEST(sql_run_out, a_hold_with_a_delay_ends_when_it_is_no_longer_valid) {
  // Broken: the core lets it run out, no clock of the engine ends it, and the lock stays forever.
  const auto runtime = std::make_shared<manual_runtime>();
  std::vector<spi::claim_ptr> over;
  const auto clock = std::make_shared<sql::run_out>(
      runtime, [&](const spi::claim_ptr& each) { over.push_back(each); });
  const auto strict = claim_number(1, 5s);
  const auto released = claim_number(2, 5s);
  const time_point start = runtime->now();
  clock->prove(strict, start);
  clock->prove(released, start);
  clock->prove(claim_number(3), start);  // no delay: the core leaves it
  runtime->run_for(900ms);
  clock->prove(strict, runtime->now());
  clock->forget(released->id);
  runtime->run_for(900ms);
  EXPECT_TRUE(over.empty());
  runtime->run_for(200ms);
  EXPECT_THAT(over, testing::ElementsAre(strict));
}

}  // namespace
}  // namespace holdfast::test

#endif
