// A lease token: what a process must know to continue a lease that another one has detached. The text is a
// secret: anyone who has it can adopt, renew or release the lease.
//
// Text: "hft1_" and base64url of the fields below, ended by a checksum, so that a token that was
// cut off or mistyped is not mistaken for one whose lease has ended.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::core {

// Every token begins with this; the secret follows.
inline constexpr std::string_view token_mark = "hft1_";

struct lease_token {
  spi::claim_id id{};  // of the detached claim
  fence_token fence;
  duration ttl{};
  duration lock_delay{};
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
  spi::mode mode = spi::mode::exclusive;
  spi::role role = spi::role::lock;
  std::string engine;  // as capabilities::engine
  spi::resource_id resource;
};

std::string to_text(const lease_token& token);
// invalid: not a token. The error does not repeat the text.
result<lease_token> parse_token(std::string_view text);

// unsupported, with the reason, where the engine cannot hand such a lease on.
result<void> check_detachable(const spi::caps& caps, spi::mode mode, spi::role role);

// The claim that holds while the lease is detached.
std::shared_ptr<spi::claim> detached_claim(const lease_token& token, const std::string& payload);

// What it means to a token's owner that the engine does not know the token's claim.
inline constexpr const char* nothing_detached =
    "the lease of this token has ended, was adopted or released before, or is of another server";

}  // namespace holdfast::core
