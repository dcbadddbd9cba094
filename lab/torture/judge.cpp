#include "torture/judge.hpp"

#include "sim/checkers/exclusion.hpp"
#include "sim/checkers/fences.hpp"
#include "sim/checkers/latch.hpp"
#include "torture/checkers/endings.hpp"
#include "torture/checkers/fair_order.hpp"
#include "torture/checkers/fenced_writes.hpp"
#include "torture/checkers/rules.hpp"
#include "torture/checkers/wake_ups.hpp"
#include "torture/formatter.hpp"
#include "torture/normalised_history.hpp"

#include <algorithm>
#include <memory>
#include <set>

namespace holdfast::torture {

namespace {

constexpr std::size_t longest_slice = 40;
constexpr std::size_t fewest_grants = 200;
constexpr std::size_t fewest_per_second = 5;

rules rules_of(const run_record& told) {
  rules known;
  for (const resource& each : told.resources) known.facts.resources.push_back(each.rule);
  known.wake_bound = told.wake_bound;
  known.order_margin = told.order_margin;
  return known;
}

std::vector<std::unique_ptr<sim::checker>> checkers_for(const rules& known) {
  std::vector<std::unique_ptr<sim::checker>> all;
  // The rules that callers can see are the simulator's, and so are their checkers.
  all.push_back(std::make_unique<sim::exclusion>(known.facts));
  all.push_back(std::make_unique<sim::readers_writers>(known.facts));
  all.push_back(std::make_unique<sim::permits>(known.facts));
  all.push_back(std::make_unique<sim::fence_order>(known.facts));
  all.push_back(std::make_unique<sim::fence_constancy>(known.facts));
  all.push_back(std::make_unique<sim::latch_count>(known.facts));
  all.push_back(std::make_unique<fenced_writes>(known.facts));
  all.push_back(std::make_unique<fair_order>(known));
  all.push_back(std::make_unique<wake_ups>(known));
  all.push_back(std::make_unique<endings>(known.facts));
  all.push_back(std::make_unique<leaks>(known.facts));
  return all;
}

// The records of the holds that show it, and what was done to their clients meanwhile; without
// holds, the last ones before it.
std::vector<sim::record> slice_of(const std::vector<sim::record>& normalised_history,
                                  const sim::violation& found) {
  const std::set<std::int32_t> holds(found.holds.begin(), found.holds.end());
  std::set<std::int32_t> clients;
  sim::moment from = found.at;
  for (const sim::record& line : normalised_history) {
    if (!holds.contains(line.hold)) continue;
    clients.insert(line.process);
    from = std::min(from, line.at);
  }
  std::vector<sim::record> slice;
  for (const sim::record& line : normalised_history) {
    if (line.at > found.at) break;
    // Made up for the checkers; what they say stands in other records.
    if (line.kind == sim::what::validity_began || line.kind == sim::what::state_lost) continue;
    const bool of_hold = line.hold != sim::nobody && holds.contains(line.hold);
    const bool of_client = line.hold == sim::nobody && line.resource == sim::nobody &&
                           line.at >= from &&
                           (clients.contains(line.process) || line.process == sim::nobody);
    if (of_hold || of_client || holds.empty()) slice.push_back(line);
  }
  if (slice.size() > longest_slice) {
    slice.erase(slice.begin(), slice.end() - static_cast<std::ptrdiff_t>(longest_slice));
  }
  return slice;
}

}  // namespace

verdict judge(const run_record& told) {
  const rules known = rules_of(told);
  const auto checkers = checkers_for(known);
  const std::vector<sim::record> normalised_history = normalised_history_of(told);
  for (const sim::record& line : normalised_history) {
    for (const auto& each : checkers) each->see(line);
  }
  verdict given;
  const sim::moment end = normalised_history.empty() ? sim::moment{} : normalised_history.back().at;
  for (const auto& each : checkers) {
    each->finish(end);
    given.checked.emplace_back(each->name());
    if (!each->found()) continue;
    const sim::violation& found = *each->found();
    given.violations.push_back(
        {std::string(found.checker), found.message, found.at, slice_of(normalised_history, found)});
  }
  std::stable_sort(given.violations.begin(), given.violations.end(),
                   [](const finding& left, const finding& right) { return left.at < right.at; });
  given.inconclusive = shortcomings(told);
  return given;
}

std::vector<std::string> shortcomings(const run_record& told) {
  std::vector<std::string> all;
  std::size_t grants = 0;
  std::set<fault> fired;
  bool latched = false;
  for (const sim::record& line : told.records) {
    if (line.kind == sim::what::acquire_granted) ++grants;
    if (line.kind == sim::what::trouble_began) fired.insert(static_cast<fault>(line.number));
    if (line.kind == sim::what::latch_told) latched = true;
  }
  const auto seconds = static_cast<std::size_t>(
      std::chrono::duration_cast<std::chrono::seconds>(told.wanted.length).count());
  const std::size_t wanted =
      std::min(fewest_grants, std::max<std::size_t>(seconds, 1) * fewest_per_second);
  const bool locks = !told.resources.empty();
  if (locks && grants < wanted) {
    all.push_back("only " + std::to_string(grants) + " grants, fewer than " +
                  std::to_string(wanted));
  }
  const auto& asked = told.wanted.workloads;
  if (!latched && std::find(asked.begin(), asked.end(), workload::latch) != asked.end()) {
    all.emplace_back("no latch was waited for to its end");
  }
  for (const fault each : told.wanted.faults) {
    if (!fired.contains(each)) all.push_back(std::string(to_string(each)) + " never happened");
  }
  return all;
}

std::string to_text(const finding& found) {
  std::string text = found.checker + ": " + found.message + "\n";
  for (const sim::record& line : found.slice) text += tell(line) + "\n";
  return text;
}

}  // namespace holdfast::torture
