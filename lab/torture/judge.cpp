#include "torture/judge.hpp"

#include "sim/checkers/exclusion.hpp"
#include "sim/checkers/fences.hpp"
#include "sim/checkers/latch.hpp"
#include "torture/checkers/disturbances.hpp"
#include "torture/checkers/endings.hpp"
#include "torture/checkers/fair_order.hpp"
#include "torture/checkers/fenced_writes.hpp"
#include "torture/checkers/wake_ups.hpp"
#include "torture/vocabulary.hpp"

#include <holdfast/result.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <unordered_map>

namespace holdfast::torture {

namespace {

// When the engine may have forgotten what it granted: from the fault's beginning until everything
// granted before its end has ended.
struct doubt {
  sim::moment begin{};
  sim::moment end{};
};

bool doubtful(const std::vector<doubt>& doubts, sim::moment at) {
  return std::any_of(doubts.begin(), doubts.end(),
                     [&](const doubt& each) { return each.begin <= at && at <= each.end; });
}

bool forgets(const run_record& told, const sim::record& line) {
  return line.kind == sim::what::trouble_began &&
         std::find(told.forgets.begin(), told.forgets.end(), static_cast<fault>(line.number)) !=
             told.forgets.end();
}

std::vector<doubt> doubts_of(const run_record& told) {
  std::vector<doubt> all;
  for (const sim::record& line : told.records) {
    const auto what = static_cast<fault>(line.number);
    if (std::find(told.forgets.begin(), told.forgets.end(), what) == told.forgets.end()) continue;
    if (line.kind == sim::what::trouble_began) all.push_back({line.at, sim::moment::max()});
    if (line.kind == sim::what::trouble_ended && !all.empty()) {
      // Until its holder has learned of it: a third of the ttl, or its end.
      all.back().end = line.at + told.wanted.ttl * 2;
    }
  }
  return all;
}

}  // namespace

std::vector<sim::record> normalised_history_of(const run_record& told) {
  const std::vector<doubt> doubts = doubts_of(told);
  std::unordered_map<std::int32_t, const sim::record*> grants;
  for (const sim::record& line : told.records) {
    if (line.kind == sim::what::acquire_granted) grants.try_emplace(line.hold, &line);
  }
  std::vector<sim::record> all;
  all.reserve(told.records.size() * 2);
  for (const sim::record& line : told.records) {
    all.push_back(line);
    if (line.kind == sim::what::acquire_granted) {
      all.back().until = told.wanted.ttl;
      sim::record begin = line;
      begin.kind = sim::what::validity_began;
      begin.until = {};
      begin.number = doubtful(doubts, line.at) ? 1 : 0;
      all.push_back(begin);
    } else if (line.kind == sim::what::validity_ended) {
      const auto grant = grants.find(line.hold);
      if (grant == grants.end()) {
        all.pop_back();
        continue;
      }
      // For a killed client, its killer writes this record; it does not know what the hold was, nor
      // that it may have been granted while the signal was on its way.
      all.back().resource = grant->second->resource;
      all.back().fence = grant->second->fence;
      all.back().at = std::max(line.at, grant->second->at);
    } else if (forgets(told, line)) {
      all.push_back(line);
      all.back().kind = sim::what::state_lost;
    }
  }
  const auto last = [](const sim::record& line) { return line.kind == sim::what::validity_ended; };
  std::stable_sort(all.begin(), all.end(), [&](const sim::record& left, const sim::record& right) {
    return left.at != right.at ? left.at < right.at : !last(left) && last(right);
  });
  return all;
}

namespace {

std::string_view mode_of(const sim::record& line) {
  switch (line.mode) {
    case spi::mode::exclusive:
      return "exclusively";
    case spi::mode::shared:
      return "shared";
    case spi::mode::permit:
      return "for permits";
  }
  return "";
}

std::string answer_of(const sim::record& line) {
  return line.number == 0 ? "ok" : std::string(describe(static_cast<errc>(line.number)));
}

std::string fault_of(const sim::record& line) {
  const bool known = line.number >= 0 && line.number < std::int64_t{all_faults.size()};
  return known ? std::string(to_string(static_cast<fault>(line.number))) : "a fault";
}

std::string event_of(const sim::record& line) {
  const std::string hold = "hold " + std::to_string(line.hold);
  const std::string fence = "fence " + std::to_string(line.fence);
  const std::string number = std::to_string(line.number);
  switch (line.kind) {
    case sim::what::acquire_invoked:
      return hold + " is asked for, " + std::string(mode_of(line)) + (line.fair ? ", fair" : "");
    case sim::what::attempt_answered:
      return hold + " is in line";
    case sim::what::acquire_granted:
      return hold + " is granted, " + fence;
    case sim::what::acquire_failed:
      return hold + " is not granted: " + answer_of(line);
    case sim::what::validity_ended:
      return hold + " is no longer valid";
    case sim::what::release_invoked:
      return hold + " is given back";
    case sim::what::release_answered:
      return hold + " was given back: " + answer_of(line);
    case sim::what::write_accepted:
      return hold + " writes with " + fence + ": accepted";
    case sim::what::write_refused:
      return hold + " writes with " + fence + ": refused";
    case sim::what::latch_set:
      return "latch " + std::to_string(line.resource) + " is set to " + number;
    case sim::what::latch_down:
      return "latch " + std::to_string(line.resource) + " is counted down";
    case sim::what::latch_told:
      return "latch " + std::to_string(line.resource) + " is open, a waiter is told";
    case sim::what::paused:
      return line.number == 1 ? "paused: the machine is busy" : "paused";
    case sim::what::trouble_began:
      return fault_of(line) + " begins";
    case sim::what::trouble_ended:
      return fault_of(line) + " ends";
    case sim::what::ended:
      return "ends with " + number;
    case sim::what::left_behind:
      return number + " claims are left at resource " + std::to_string(line.resource);
    default:
      return std::string(sim::to_string(line.kind));
  }
}

// "   0.171867  client 1  hold 2 is granted, fence 6"
std::string tell(const sim::record& line) {
  std::array<char, 64> head{};
  const std::string who =
      line.process == sim::nobody ? "-" : "client " + std::to_string(line.process);
  std::snprintf(head.data(), head.size(), "%11.6f  %-10s  ",
                std::chrono::duration<double>(line.at).count(), who.c_str());
  return head.data() + event_of(line);
}

}  // namespace

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
  // The rules visible to callers are the same as in the simulator, and so are their checkers.
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
    // Made up for the checkers; other records say the same.
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
