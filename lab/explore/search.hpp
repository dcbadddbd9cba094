// Runs every order of events of a scenario. A world cannot be copied, so each branch begins with a
// new one in which the choices up to there are made again; a state that was met before is not entered
// a second time.
#pragma once

#include "explore/small_world.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::explore {

struct search_limits {
  std::uint64_t states = UINT64_MAX;
  std::uint32_t depth = 2'000;  // choices in a row
  // Which choice is tried first. 0: normal events before troubles; 1: the reverse; else shuffled
  // with this seed. A search that is stopped early covers different parts of a world with each
  // value.
  std::uint32_t order = 0;
};

// The choices of a run, each as an index into the choices available at that point.
using route = std::vector<std::uint32_t>;

struct search_result {
  std::uint64_t states = 0;  // distinct states
  std::uint64_t transitions = 0;
  std::uint64_t runs = 0;  // that reached their end
  std::uint32_t deepest = 0;
  bool complete = true;  // false: a limit was reached, or a guarantee was broken
  bool bounded = false;  // that limit is the number of states
  std::chrono::duration<double> took{};
  std::vector<sim::violation> violations;  // of the first run that broke a guarantee,
  route broken;                            // which is this one
};

// Stops at the first run that breaks a guarantee.
search_result search(const scenario& in, const search_limits& limits = {});

// Makes these choices and prints what happens; then finishes the run.
std::vector<sim::violation> replay(const scenario& in, const route& choices,
                                   sim::history::sink timeline);

std::string to_string(const route& choices);
std::optional<route> route_in(std::string_view text);

}  // namespace holdfast::explore
