// Many worlds, on several threads: seeds in, broken guarantees out.
#pragma once

#include "sim/plan.hpp"
#include "sim/world.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sim {

struct campaign_settings {
  std::uint64_t first = 1;
  std::uint64_t seeds = 1000;
  std::uint32_t threads = 1;
  std::uint64_t failures = 10;                // stop after this many
  std::optional<std::chrono::seconds> limit;  // stop after this long
  restrictions at_most{};
  // Worlds of another kind; empty: run_seed.
  std::function<world_outcome(std::uint64_t seed)> run{};
};

struct failed_seed {
  std::uint64_t seed = 0;
  std::vector<violation> violations;  // the earliest first
};

struct campaign_result {
  std::uint64_t seeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t grants = 0;
  std::uint64_t hash = 0;  // of all traces, whichever thread ran them
  std::chrono::duration<double> took{};
  std::vector<failed_seed> failed;  // in the order of their seeds

  // "1000000 seeds in 200.0 s: 5000 seeds/s, ..."
  [[nodiscard]] std::string summary() const;
};

campaign_result run_campaign(const campaign_settings& settings);

// One world from its seed.
world_outcome run_seed(std::uint64_t seed, const restrictions& at_most = {},
                       history::sink timeline = nullptr);

// Leaves out clients, rounds and troubles, one after another, as long as the same guarantee is
// still broken.
restrictions shrink(std::uint64_t seed, std::string_view checker, const restrictions& from = {});

// The checker, the message, how to reproduce it, and the smallest world that shows it.
std::string report(const failed_seed& failed, const restrictions& at_most,
                   const std::string& program);

}  // namespace holdfast::sim
