// When a client, or everybody, was last disturbed by a fault: for checkers of what is promised only
// to those who live and are connected.
#pragma once

#include "sim/record.hpp"
#include "torture/vocabulary.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace holdfast::torture {

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
  // A process that was killed is replaced, and what is done to its network goes on for the new one.
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

  std::map<std::int32_t, int> troubles_;  // that go on; nobody: everybody
  std::map<std::int32_t, int> pauses_;
  std::map<std::int64_t, std::int32_t> places_;  // who is there now
  std::map<std::int32_t, std::int32_t> heirs_;
  std::map<std::int32_t, sim::moment> last_;
};

}  // namespace holdfast::torture
