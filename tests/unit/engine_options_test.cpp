// Options out of range are refused before anything is sent, and named limits are kept.
#include "support/engine_bench.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::test {
namespace {

struct option_case {
  std::string name;
  std::function<void(core::request&)> set;
  std::optional<errc> refused;  // none: accepted
};

void PrintTo(const option_case& each, std::ostream* out) { *out << each.name; }

class engine_options : public ::testing::TestWithParam<option_case> {};

TEST_P(engine_options, are_checked_before_anything_is_sent) {
  // Broken: a ttl of zero deletes the key and says "renewed"; a negative wait is refused by one
  // interface and a try in the other.
  engine_bench bench;
  auto request = request_for("stock");
  GetParam().set(request);
  const auto asked = bench.ask(request);
  if (GetParam().refused) {
    ASSERT_TRUE(asked->refusal.has_value());
    EXPECT_EQ(asked->refusal->code, *GetParam().refused) << asked->refusal->message();
    EXPECT_FALSE(asked->refusal->detail.empty());
    EXPECT_EQ(bench.store->take_log(), "");
    EXPECT_EQ(bench.engine->live_claims(), 0U);
  } else {
    EXPECT_EQ(asked->state(), "waiting");
    EXPECT_EQ(bench.store->take_log(), "attempt a");
  }
}

option_case ttl(const std::string& name, duration value, std::optional<errc> refused) {
  return {"ttl_" + name, [value](core::request& request) { request.lock.ttl = value; }, refused};
}
option_case wait(const std::string& name, duration value, std::optional<errc> refused) {
  return {"wait_" + name, [value](core::request& request) { request.wait = value; }, refused};
}
option_case notice(const std::string& name, duration value, std::optional<errc> refused) {
  return {"notice_" + name, [value](core::request& request) { request.lock.notice = value; },
          refused};
}
option_case delay(const std::string& name, duration value, std::optional<errc> refused) {
  return {"lock_delay_" + name,
          [value](core::request& request) { request.lock.lock_delay = value; }, refused};
}
option_case retry(const std::string& name, retry_policy value, std::optional<errc> refused) {
  return {"retry_" + name, [value](core::request& request) { request.lock.retry = value; },
          refused};
}
option_case permits(const std::string& name, std::uint32_t some, std::uint32_t all,
                    std::optional<errc> refused) {
  return {"permits_" + name,
          [some, all](core::request& request) {
            request.mode = spi::mode::permit;
            request.permits = some;
            request.max = all;
          },
          refused};
}

constexpr auto fine = std::nullopt;
constexpr auto bad = errc::invalid;

const option_case cases[] = {
    ttl("shortest", 100ms, fine),
    ttl("longest", 24h, fine),
    ttl("zero", 0s, bad),
    ttl("negative", -1s, bad),
    ttl("most_negative", duration::min(), bad),
    ttl("too_short", 100ms - 1ns, bad),
    ttl("too_long", 24h + 1ns, bad),
    ttl("for_ever", forever, bad),
    wait("zero", 0s, fine),
    wait("for_ever", forever, fine),
    wait("almost_for_ever", forever - 1ns, fine),
    wait("negative", -1ns, fine),
    wait("most_negative", duration::min(), fine),
    notice("zero", 0s, fine),
    notice("just_below_half", 15s - 1ns, fine),
    notice("half", 15s, bad),
    notice("negative", -1ns, bad),
    notice("for_ever", forever, bad),
    delay("zero", 0s, fine),
    delay("longest", 24h, fine),
    delay("too_long", 24h + 1ns, bad),
    delay("negative", -1ns, bad),
    retry("never", retry_policy::never(), fine),
    retry("no_attempt_at_all", retry_policy::times(0), bad),
    retry("negative_first", retry_policy::exponential(-1s, 1s), bad),
    retry("negative_limit", retry_policy::exponential(1s, -1s), bad),
    retry("endless_pause", retry_policy::exponential(1s, forever), bad),
    retry("longest_pause", retry_policy::exponential(24h, 24h), fine),
    permits("some", 2, 3, fine),
    permits("all", 3, 3, fine),
    permits("none", 0, 3, bad),
    permits("more_than_there_are", 4, 3, bad),
    permits("of_none", 1, 0, bad),
};

INSTANTIATE_TEST_SUITE_P(grid, engine_options, ::testing::ValuesIn(cases),
                         [](const auto& each) { return each.param.name; });

TEST(engine_capabilities, what_an_engine_cannot_do_is_unsupported_and_says_so) {
  // Broken: an engine without order grants "fair" locks in any order.
  engine_bench bench;
  bench.store->capabilities.fair = false;
  bench.store->capabilities.shared = false;
  bench.store->capabilities.permits = false;
  std::vector<core::request> requests(3, request_for("stock"));
  requests[0].lock.fair = true;
  requests[1].mode = spi::mode::shared;
  requests[2].mode = spi::mode::permit;
  for (const auto& request : requests) {
    const auto asked = bench.ask(request);
    EXPECT_EQ(asked->state(), "unsupported");
    EXPECT_NE(asked->refusal->detail.find("fake"), std::string::npos);
  }
  EXPECT_EQ(bench.store->take_log(), "");
}

TEST(engine_limits, too_many_waiting_acquisitions_are_overloaded) {
  // Broken: a client that gets requests faster than they are served grows without limit.
  core::engine_settings settings;
  settings.limit.waiters = 3;
  engine_bench bench(settings);
  const auto inside = bench.ask();
  const auto second = bench.ask();
  const auto third = bench.ask();
  EXPECT_EQ(bench.ask()->state(), "overloaded");
  EXPECT_EQ(bench.ask("another")->state(), "overloaded");
  second->handle->cancel();
  EXPECT_EQ(bench.ask()->state(), "waiting");  // room again
  bench.grant(1);
  EXPECT_EQ(bench.ask()->state(), "waiting");  // holders do not count
  EXPECT_EQ(bench.ask()->state(), "overloaded");
}

TEST(engine_limits, a_command_has_a_third_of_the_ttl_and_five_seconds_at_most) {
  // Broken: a command outlives the lease that depends on it, or hangs on a half-open connection.
  engine_bench bench;
  auto brief = request_for("brief");
  brief.lock.ttl = 900ms;
  bench.ask(brief);
  EXPECT_EQ(bench.store->attempts.back().context.deadline, bench.runtime->now() + 300ms);
  auto lasting = request_for("lasting");
  lasting.lock.ttl = 1h;
  bench.ask(lasting);
  EXPECT_EQ(bench.store->attempts.back().context.deadline, bench.runtime->now() + 5s);
}

TEST(engine_claims, carry_what_was_asked_for) {
  // Broken: an option is lost between the caller and the engine.
  core::engine_settings settings;
  settings.payload = "host:1:program";
  engine_bench bench(settings);
  auto request = request_for("stock", 0s);
  request.mode = spi::mode::permit;
  request.permits = 2;
  request.max = 5;
  request.lock.ttl = 7s;
  request.lock.fair = true;
  request.lock.lock_delay = 3s;
  request.lock.renew = renew::never;
  bench.ask(request);
  request.payload = "own";
  bench.ask(request);
  const spi::claim& claim = *bench.store->attempts[0].claim;
  EXPECT_EQ(claim.resource.name, "stock");
  EXPECT_EQ(claim.mode, spi::mode::permit);
  EXPECT_EQ(claim.permits, 2U);
  EXPECT_EQ(claim.max, 5U);
  EXPECT_EQ(claim.ttl, 7s);
  EXPECT_EQ(claim.lock_delay, 3s);
  EXPECT_TRUE(claim.fair);
  EXPECT_FALSE(claim.renewed);
  EXPECT_FALSE(claim.queued);
  EXPECT_EQ(claim.fence_block, 1U);
  EXPECT_EQ(claim.payload, "host:1:program");
  EXPECT_EQ(bench.store->attempts[1].claim->payload, "own");
}

}  // namespace
}  // namespace holdfast::test
