// What the checkers of order and of wake-ups know about a run: its bounds, who was disturbed when,
// and where an offer may have run out.
#pragma once

#include "sim/checker.hpp"
#include "sim/record.hpp"
#include "torture/vocabulary.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

namespace holdfast::torture {

// What is known beforehand.
struct rules {
  sim::facts facts;
  duration wake_bound{};
  duration order_margin{};
};

// When a client, or everybody, was last disturbed by a fault: for checkers of what is promised only
// to live, connected clients.
class disturbances {
 public:
  void see(const sim::record& line) {
    switch (line.kind) {
      case sim::what::started:
        return take_over(line.process, line.number);
      case sim::what::trouble_began:
        ++troubles_[line.process];
        return;
      case sim::what::trouble_ended:
        return end_trouble(line.process, line.at);
      case sim::what::paused:
        ++pauses_[line.process];
        return;
      case sim::what::resumed:
        if (pauses_[line.process] > 0) --pauses_[line.process];
        last_[line.process] = line.at;
        return;
      default:
        return;
    }
  }

  // Was the process, or everybody, disturbed at this time or later?
  [[nodiscard]] bool since(std::int32_t process, sim::moment when) const {
    return disturbed(process, when) || disturbed(sim::nobody, when);
  }
  // Now?
  [[nodiscard]] bool now(std::int32_t process) const {
    return count(process) > 0 || count(sim::nobody) > 0;
  }
  // The end of the last one.
  [[nodiscard]] sim::moment last(std::int32_t process) const {
    return std::max(end_of(process), end_of(sim::nobody));
  }

 private:
  // A killed process is replaced, and a fault of its network continues for the new one.
  void take_over(std::int32_t process, std::int64_t place) {
    const auto [found, first] = places_.try_emplace(place, process);
    if (first) return;
    const std::int32_t before = std::exchange(found->second, process);
    heirs_[before] = process;
    troubles_[process] = troubles_[before];
  }
  void end_trouble(std::int32_t process, sim::moment at) {
    for (;;) {
      if (troubles_[process] > 0) --troubles_[process];
      last_[process] = at;
      const auto heir = heirs_.find(process);
      if (heir == heirs_.end()) return;
      process = heir->second;
    }
  }

  [[nodiscard]] int count(std::int32_t process) const {
    return of(troubles_, process) + of(pauses_, process);
  }
  [[nodiscard]] static int of(const std::map<std::int32_t, int>& from, std::int32_t process) {
    const auto found = from.find(process);
    return found == from.end() ? 0 : found->second;
  }
  [[nodiscard]] sim::moment end_of(std::int32_t process) const {
    const auto found = last_.find(process);
    return found == last_.end() ? sim::moment::min() : found->second;
  }
  [[nodiscard]] bool disturbed(std::int32_t process, sim::moment when) const {
    return count(process) > 0 || end_of(process) >= when;
  }

  std::map<std::int32_t, int> troubles_;  // in progress; nobody: everybody
  std::map<std::int32_t, int> pauses_;
  std::map<std::int64_t, std::int32_t> places_;  // the current process of each client
  std::map<std::int32_t, std::int32_t> heirs_;
  std::map<std::int32_t, sim::moment> last_;
};

// Where an offer may have run out: a client that was killed or disturbed had asked for the
// resource, also if it has given up since (its withdrawal may not have arrived), and for a while
// nobody was seen to hold it. The first waiter to be heard from after that is next, so for a
// re-check's time the order of the waiters proves nothing.
class lapses {
 public:
  explicit lapses(const sim::facts& known) : facts_(known) {}

  void see(const sim::record& line, const disturbances& known) {
    note_absence(line, known);
    switch (line.kind) {
      case sim::what::acquire_invoked:
        asked_[line.hold] = {line.process, line.resource};
        return;
      case sim::what::acquire_failed:
        if (const auto found = asked_.find(line.hold); found != asked_.end()) {
          found->second.until = line.at + settling;
        }
        return;
      case sim::what::acquire_granted:
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
    sim::moment until = sim::moment::max();  // by then its withdrawal has arrived
  };
  struct place {
    sim::moment busy{};  // last seen to be granted or released
    // Until then an offer may be made to a waiter that cannot accept it; nobody was absent before
    // the start.
    sim::moment absent = -settling;
    sim::moment lapsed = -settling;
  };

  void note_absence(const sim::record& line, const disturbances& known) {
    std::erase_if(asked_, [&](const auto& each) { return each.second.until < line.at; });
    for (const auto& [hold, each] : asked_) {
      const bool died = line.kind == sim::what::killed && each.process == line.process;
      if (!died && !known.now(each.process)) continue;
      sim::moment& until = places_[each.resource].absent;
      until = std::max(until, line.at + (died ? place_lives : shortest_offer));
    }
  }
  void busy(const sim::record& line) {
    place& at = places_[line.resource];
    const auto kind = facts_.resources.at(static_cast<std::size_t>(line.resource)).kind;
    // Other readers and permits may be held beside an offered one.
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
