// What an explored world is made of: who is there, what they ask for, and how much may go wrong. The
// explorer runs every order of events that a scenario allows; see docs/exploration.md.
#pragma once

#include "sim/plan.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace holdfast::explore {

// How often each kind of trouble may strike, in one run.
struct budget {
  std::uint32_t losses = 0;   // a message disappears: request, reply or push
  std::uint32_t stalls = 0;   // a message, and what follows it on its connection, is late
  std::uint32_t pauses = 0;   // a client is stopped, and goes on later
  std::uint32_t freezes = 0;  // likewise, all waiting clients at the same moment
  std::uint32_t crashes = 0;
  std::uint32_t outages = 0;   // nothing reaches a client or leaves it for a while
  std::uint32_t wipes = 0;     // the server restarts without its state
  std::uint32_t cancels = 0;   // a caller changes its mind
  std::uint32_t together = 1;  // troubles in total
};

// What one client does.
struct role {
  std::uint32_t rounds = 1;
  spi::mode mode = spi::mode::exclusive;
  std::uint32_t permits = 1;
  bool fair = true;
  bool tries = false;           // does not wait
  bool changes = false;         // up- or downgrades once
  bool keeps = false;           // until the lease ends
  bool detaches = false;        // instead of releasing
  bool adopts = false;          // what another has detached
  std::int64_t clock_rate = 0;  // microseconds too fast per second

  bool operator==(const role&) const = default;
};

// Leases of this length: everything else of an explored world is short beside it.
inline constexpr duration lease = std::chrono::seconds(3);

struct scenario {
  std::string_view name;
  std::vector<role> roles;                              // one per client, that is: process
  sim::resource_kind kind = sim::resource_kind::mutex;  // a latch: set, and counted down once
  std::uint32_t max = 1;
  sim::dialect dialect = sim::dialect::queueing;
  bool renewed = true;
  bool server_timers = true;
  std::int64_t server_rate = 0;
  duration lock_delay{};
  budget troubles;
  // By then every caller has asked, and no more trouble begins.
  duration asked_by = std::chrono::milliseconds(1500);
  duration trouble_until = std::chrono::milliseconds(4500);
  duration shortest_trouble{};
  duration longest_trouble = lease + std::chrono::milliseconds(2500);  // outlives every lease
  duration longest_hold = std::chrono::milliseconds(2500);
  bool small = false;  // part of the small bound that `make test` runs
  // Limit of the search, even if it is incomplete; docs/exploration.md says for which worlds.
  std::uint64_t most_states = UINT64_MAX;

  [[nodiscard]] sim::plan to_plan() const;
};

// The latest moment of a run: whatever has not ended by then never does.
inline constexpr duration horizon = std::chrono::seconds(40);

const std::vector<scenario>& all_scenarios();
const scenario* scenario_named(std::string_view name) noexcept;

}  // namespace holdfast::explore
