// What a quorum's world is made of, drawn from its seed: members with clocks of their own, clients,
// what they do, and what goes wrong in and between them.
#pragma once

#include "core/limits.hpp"
#include "sim/checker.hpp"
#include "sim/link.hpp"
#include "sim/server.hpp"
#include "sim/sim_runtime.hpp"
#include "sim/sim_store.hpp"
#include "sim/trouble.hpp"

#include <holdfast/options.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace holdfast::sim {

// One occurrence on the links between a client and a member; negative: on all of them.
struct quorum_trouble {
  disturbance what;
  std::int32_t member = -1;
};

struct quorum_plan {
  std::uint64_t seed = 0;
  std::uint32_t members = 5;
  std::uint32_t clients = 2;
  std::uint32_t rounds = 2;  // per client
  resource_kind kind = resource_kind::mutex;
  trouble_set kinds;
  std::vector<quorum_trouble> troubles;
  moment healed{};
  moment strikes_until{};
  // One member that wrongly claims that it took away what a client has there.
  std::uint32_t liar = 0;
  std::vector<std::pair<moment, std::uint32_t>> lies;  // when, and to which client

  duration ttl{};
  duration longest_hold{};
  duration longest_think{};
  duration longest_wait{};
  std::uint32_t tries = 0;  // per thousand
  std::uint32_t forever = 0;
  duration answer{};  // how long a member is waited for
  core::limits limit{};
  retry_policy retry{};
  link_conditions normal{};
  lateness late{};
  store_settings store{};
  server_settings server{};
  std::vector<node_clock> member_clocks;
  std::vector<node_clock> client_clocks;

  [[nodiscard]] facts known() const;
  // Nothing goes wrong except lies.
  [[nodiscard]] bool calm() const noexcept {
    return troubles.empty() && strikes_until == moment{} && !kinds.has(trouble::clock_rates);
  }
};

quorum_plan draw_quorum_plan(std::uint64_t seed);

}  // namespace holdfast::sim
