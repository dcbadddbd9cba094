// The text of a token: all of it or none.
#include "core/lease_token.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace holdfast::core {
namespace {

using namespace std::chrono_literals;

lease_token sample() {
  lease_token token;
  for (std::size_t i = 0; i < token.id.bytes.size(); ++i) {
    token.id.bytes[i] = static_cast<std::uint8_t>(251 * i + 3);
  }
  token.fence = fence_token(1'700'000'000'123'456);
  token.ttl = 10min;
  token.lock_delay = 250ms;
  token.permits = 2;
  token.max = 5;
  token.mode = spi::mode::permit;
  token.engine = "postgresql";
  token.resource = {"shop", "order 4711 \xc3\xa4"};
  return token;
}

TEST(lease_token, is_read_as_it_was_written) {
  // Broken: the next process has another lock, or another fence.
  const std::string text = to_text(sample());
  EXPECT_EQ(text.find_first_not_of("hft1_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789-"),
            std::string::npos);
  const auto read = parse_token(text);
  ASSERT_TRUE(read);
  const lease_token token = sample();
  EXPECT_EQ(read->id, token.id);
  EXPECT_EQ(read->fence, token.fence);
  EXPECT_EQ(read->ttl, token.ttl);
  EXPECT_EQ(read->lock_delay, token.lock_delay);
  EXPECT_EQ(read->permits, token.permits);
  EXPECT_EQ(read->max, token.max);
  EXPECT_EQ(read->mode, token.mode);
  EXPECT_EQ(read->role, token.role);
  EXPECT_EQ(read->engine, token.engine);
  EXPECT_EQ(read->resource, token.resource);
}

TEST(lease_token, that_was_cut_off_mistyped_or_lengthened_is_refused) {
  // Broken: half a token looks like a lock that is gone.
  const std::string text = to_text(sample());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_token(text.substr(0, size))) << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string wrong = text;
    wrong[at] = wrong[at] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(parse_token(wrong)) << at;
  }
  EXPECT_FALSE(parse_token(text + "A"));
  EXPECT_FALSE(parse_token(text + "\n"));
  EXPECT_FALSE(parse_token(" " + text));
  EXPECT_EQ(parse_token("x").error().code, errc::invalid);
}

TEST(lease_token, out_of_any_limit_is_none) {
  // Broken: a forged token sends something that no lock could have requested.
  const auto refused = [](auto spoil) {
    lease_token token = sample();
    spoil(token);
    return !parse_token(to_text(token));
  };
  EXPECT_TRUE(refused([](lease_token& token) { token.ttl = 1ms; }));
  EXPECT_TRUE(refused([](lease_token& token) { token.ttl = duration::max(); }));
  EXPECT_TRUE(refused([](lease_token& token) { token.lock_delay = -1ns; }));
  EXPECT_TRUE(refused([](lease_token& token) { token.permits = 6; }));
  EXPECT_TRUE(refused([](lease_token& token) { token.permits = 0; }));
  EXPECT_TRUE(refused([](lease_token& token) { token.mode = static_cast<spi::mode>(3); }));
  EXPECT_TRUE(refused([](lease_token& token) { token.role = static_cast<spi::role>(3); }));
  EXPECT_TRUE(refused([](lease_token& token) { token.engine.clear(); }));
  EXPECT_TRUE(refused([](lease_token& token) { token.resource.name.clear(); }));
  EXPECT_TRUE(refused([](lease_token& token) { token.resource.name = "a\nb"; }));
  EXPECT_TRUE(refused([](lease_token& token) { token.resource.space = "a/b"; }));
}

TEST(lease_token, the_claim_says_that_it_is_detached) {
  // Broken: an operator attributes a lock to a process that is gone.
  const auto claim = detached_claim(sample(), "host:1:job");
  EXPECT_EQ(claim->payload, "host:1:job (detached)");
  EXPECT_EQ(detached_claim(sample(), claim->payload)->payload, claim->payload);
  EXPECT_EQ(detached_claim(sample(), std::string(250, 'x'))->payload, std::string(250, 'x'));
  EXPECT_TRUE(claim->detached);
  EXPECT_FALSE(claim->renewed);
  EXPECT_FALSE(claim->queued);
}

}  // namespace
}  // namespace holdfast::core
