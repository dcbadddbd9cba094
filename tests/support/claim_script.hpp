// Short names for what goes into a claim_machine and what comes out of it, so that a test reads
// like a conversation: answers to feed, and orders as text.
#pragma once

#include "core/claim_machine.hpp"
#include "support/times.hpp"

#include <holdfast/spi/store.hpp>

#include <ostream>
#include <string>

namespace holdfast::test {

// Answers to an attempt.
result<spi::outcome> granted(std::uint64_t fence, duration ttl = 30s);
result<spi::outcome> blocked_in_line(duration server_now, duration recheck_after = 30s);
result<spi::outcome> blocked_outside(duration recheck_after = 30s);

// A pushed grant, decided at `server_now`.
spi::granted offer(std::uint64_t fence, duration server_now, duration ttl = 2s);
spi::granted lease_of(std::uint64_t fence, duration ttl = 30s);

// Answers to a renewal.
spi::renewal renewed(std::uint64_t fence, duration ttl = 30s);
spi::renewal still_waiting(duration server_now, duration recheck_after = 30s);
spi::renewal not_there();
spi::renewal no_renewal();

// No answer by the deadline.
template <class T>
result<T> no_answer() {
  return failure(errc::unavailable, "no answer");
}

// The orders in the order in which they are carried out: "settle:7 wanted", "lose:lost leave".
// Empty: nothing to do.
std::string said(const core::claim_machine::orders& orders);

// What most tests start from: ttl 30 s, queueing, renewed, no deadline.
core::machine_settings usual_settings();

// Held since an attempt sent at(0); with a ttl of 30 s valid until 29.698 s.
core::claim_machine held_claim(core::machine_settings settings = usual_settings());

}  // namespace holdfast::test

namespace holdfast::core {

// So that a failed comparison tells the phase and not a number.
void PrintTo(claim_machine::phase phase, std::ostream* out);

}  // namespace holdfast::core
