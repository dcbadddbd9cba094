// What a world is made of, drawn from its seed: who is there, what they do, how the engine is
// tuned, what goes wrong and when. A restricted plan is the same world with parts left out;
// shrinking uses it.
#pragma once

#include "core/limits.hpp"
#include "sim/checker.hpp"
#include "sim/link.hpp"
#include "sim/random.hpp"
#include "sim/server.hpp"
#include "sim/sim_runtime.hpp"
#include "sim/sim_store.hpp"
#include "sim/trouble.hpp"

#include <holdfast/options.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sim {

// The most of everything.
struct restrictions {
  std::uint32_t clients = 100;
  std::uint32_t actors = 100;
  std::uint32_t rounds = 100;
  std::uint32_t resources = 100;
  std::uint32_t disturbances = 1000;
  trouble_set troubles = trouble_set::all();

  // As options of the program.
  [[nodiscard]] std::string to_options() const;
};

struct resource_plan {
  resource_kind kind = resource_kind::mutex;
  std::uint32_t max = 1;
  std::uint32_t fair = 0;  // per thousand of the claims
};

struct plan {
  std::uint64_t seed = 0;
  std::uint32_t clients = 2;
  std::uint32_t actors = 2;  // per client
  std::uint32_t rounds = 2;  // per actor
  std::vector<resource_plan> resources;
  trouble_set troubles;
  std::vector<disturbance> disturbances;
  moment healed{};         // when the last disturbance has ended
  moment strikes_until{};  // until then a step may bring trouble

  // Tuning.
  duration ttl{};
  duration longest_hold{};
  duration longest_think{};
  duration longest_wait{};
  duration lock_delay{};
  std::uint32_t forever = 500;  // per thousand of the acquisitions wait forever,
  std::uint32_t tries = 150;    // or not at all
  std::uint32_t unrenewed = 100;
  std::uint32_t cancels = 0;
  std::uint32_t changes = 0;  // up- and downgrades
  std::uint32_t moves = 0;    // leases that are detached, and adopted by others
  std::uint32_t named = 500;  // claims that name their acquisition: they are not handed over
  bool hand_over_locally = true;
  bool closes = true;  // clients are closed at the end
  core::limits limit{};
  retry_policy retry{};
  lateness late{};
  link_conditions normal{};
  server_settings server{};
  store_settings store{};
  node_clock server_clock;
  std::vector<node_clock> client_clocks;

  // A step may bring trouble.
  [[nodiscard]] bool strikes() const noexcept;
  [[nodiscard]] facts known() const;
};

plan draw_plan(std::uint64_t seed, const restrictions& at_most = {});

}  // namespace holdfast::sim
