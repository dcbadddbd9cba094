// Examines the whole history of a run and reports what was broken, and what shows it.
#pragma once

#include "sim/checker.hpp"
#include "torture/run_record.hpp"

#include <string>
#include <vector>

namespace holdfast::torture {

struct finding {
  std::string checker;
  std::string message;
  sim::moment at{};
  std::vector<sim::record> slice;  // the shortest part of the history that shows it
};

struct verdict {
  std::vector<finding> violations;
  std::vector<std::string> inconclusive;  // why the run shows little
  std::vector<std::string> checked;       // the checkers' names
};

verdict judge(const run_record& told);

// The slice, a line each.
std::string to_text(const finding& found);

// Why a run shows little: too few grants, or a requested fault that never happened.
std::vector<std::string> shortcomings(const run_record& told);

// The history as the checkers read it: the beginning and end of validity made explicit, and what a
// stated limit excuses marked as such. Faults are records trouble_began and trouble_ended, with the
// fault as number and a client's process or nobody.
std::vector<sim::record> normalised_history_of(const run_record& told);

}  // namespace holdfast::torture
