// Where an offer may have run out: a client that was killed or disturbed had asked for the resource, and
// for a while nobody was seen to hold it. The first to speak after that is next, so for a re-check's
// time the order of those who wait shows nothing.
#pragma once

#include "sim/checker.hpp"
#include "torture/checkers/disturbances.hpp"

#include <algorithm>
#include <chrono>
#include <map>

namespace holdfast::torture {

class lapses {
 public:
  explicit lapses(const sim::facts& known) : facts_(known) {}

  void see(const sim::record& line, const disturbances& known) {
    note_absence(line, known);
    switch (line.kind) {
      case sim::what::acquire_invoked:
        asked_[line.hold] = {line.process, line.resource};
        return;
      case sim::what::acquire_granted:
      case sim::what::acquire_failed:
      case sim::what::validity_ended:
        asked_.erase(line.hold);
        busy(line);
        return;
      case sim::what::killed:
        std::erase_if(asked_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return;
      default:
        return;
    }
  }

  [[nodiscard]] bool near(std::int32_t resource, sim::moment now) const {
    const auto found = places_.find(resource);
    return found != places_.end() && found->second.lapsed + settling >= now;
  }

 private:
  static constexpr duration shortest_offer = std::chrono::milliseconds(150);
  static constexpr duration settling = std::chrono::seconds(3);
  static constexpr duration place_lives = std::chrono::seconds(32);  // a waiter's lease, an offer

  struct asker {
    std::int32_t process = sim::nobody;
    std::int32_t resource = sim::nobody;
  };
  struct place {
    sim::moment busy{};  // last seen to be granted or given back
    // Until then an offer may be made to one that cannot take it up; nobody was absent before the start.
    sim::moment absent = -settling;
    sim::moment lapsed = -settling;
  };

  void note_absence(const sim::record& line, const disturbances& known) {
    for (const auto& [hold, each] : asked_) {
      const bool died = line.kind == sim::what::killed && each.process == line.process;
      if (!died && !known.now(each.process)) continue;
      sim::moment& until = places_[each.resource].absent;
      until = std::max(until, line.at + (died ? place_lives : shortest_offer));
    }
  }
  void busy(const sim::record& line) {
    if (line.kind == sim::what::acquire_failed) return;
    place& at = places_[line.resource];
    const auto kind = facts_.resources.at(static_cast<std::size_t>(line.resource)).kind;
    // Readers and permits may be held beside the one that is offered.
    const bool alone = kind == sim::resource_kind::mutex;
    const bool quiet =
        line.kind == sim::what::acquire_granted && (!alone || line.at - at.busy >= shortest_offer);
    if (quiet && at.absent + shortest_offer >= at.busy) at.lapsed = line.at;
    at.busy = line.at;
  }

  const sim::facts& facts_;
  std::map<std::int32_t, asker> asked_;  // by hold
  std::map<std::int32_t, place> places_;
};

}  // namespace holdfast::torture
