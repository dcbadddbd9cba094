// What a run amounts to, in numbers.
#pragma once

#include "torture/run_record.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace holdfast::torture {

struct figures {
  std::size_t grants = 0;
  std::map<workload, std::size_t> grants_of;
  std::map<std::string, std::size_t> refusals;  // failed acquisitions, by their answer
  std::map<fault, std::size_t> faults;          // that happened
  std::size_t clients = 0;                      // processes, replaced ones included
  std::size_t stale_writes = 0;                 // refused by their fence, as they should be
  // From a release with somebody waiting to the next grant.
  std::optional<duration> hand_off_half;
  std::optional<duration> hand_off_most;  // 99 of 100
  // The longest time during which somebody waited and nobody was granted anything.
  duration longest_outage{};
};

figures figures_of(const run_record& told);

// "1.4 ms", "2.1 s"
std::string short_time(duration span);

}  // namespace holdfast::torture
