// The history as the checkers read it: validity with its begin and end made explicit, and what a
// stated limit excuses marked as such.
#pragma once

#include "torture/run_record.hpp"

#include <vector>

namespace holdfast::torture {

// Faults are records trouble_began and trouble_ended, with the fault as number and a client's
// process or nobody.
std::vector<sim::record> normalised_history_of(const run_record& told);

// When the engine may have forgotten what it granted: from the fault's begin until what was granted
// before its end has ended.
struct doubt {
  sim::moment begin{};
  sim::moment end{};
};
std::vector<doubt> doubts_of(const run_record& told);

}  // namespace holdfast::torture
