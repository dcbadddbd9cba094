// The subjects of the conformance test's worlds, their rules, and how answers are compared.
#pragma once

#include "redis_scripts_harness.hpp"
#include "stores/memory/ledger.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace holdfast::test {

inline std::string text_of(const spi::granted& grant) {
  return "granted for " + std::to_string(grant.ttl / 1us) + (grant.offer ? " as an offer" : "") +
         (grant.wanted ? ", wanted" : "");
}

inline std::string text_of(const result<spi::outcome>& answer) {
  if (!answer) return std::string(describe(answer.error().code));
  if (const auto* grant = std::get_if<spi::granted>(&*answer)) return text_of(*grant);
  return std::get<spi::blocked>(*answer).queued ? "blocked in line" : "blocked";
}

inline std::string text_of(const spi::renewal& renewal) {
  const std::string state = std::to_string(static_cast<int>(renewal.state));
  const bool holds =
      renewal.state == spi::hold_state::renewed || renewal.state == spi::hold_state::held;
  return "renewal " + state + (holds ? ", " + text_of(renewal.grant) : "");
}

// The subject of a world; `alone` is one process, which mostly finds the name as it left it. All
// but `anything` and `semaphore` are mostly ordinary.
enum class about : std::uint8_t { anything, mutex, readers, permits, semaphore, line, alone };
inline constexpr about subjects[] = {about::anything,  about::mutex, about::readers, about::permits,
                                     about::semaphore, about::line,  about::alone};

// In a long queue no lease ends while it grows and shrinks.
inline short_scripts::times times_for(about what) {
  return {what == about::line ? 400ms : 60ms, 100ms};
}
inline duration offer_for(about what) { return what == about::line ? 100ms : 8ms; }

inline memory::rules short_rules(about what) {
  memory::rules rules;
  rules.offer = offer_for(what);
  rules.hand_over_after = duration{0};  // the lock is handed to the waiter
  rules.waiter_lease = times_for(what).waiter_lease;
  rules.tombstone_extra = times_for(what).tombstone_extra;
  return rules;
}

}  // namespace holdfast::test
