// When a client, or everybody, was last disturbed by a fault: for checkers of what is promised only
// to those who live and are connected.
#pragma once

#include "sim/record.hpp"
#include "torture/vocabulary.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::torture {

class disturbances {
 public:
  void see(const sim::record& line) {
    switch (line.kind) {
      case sim::what::trouble_began:
        ++active_[line.process];
        return;
      case sim::what::trouble_ended:
        if (active_[line.process] > 0) --active_[line.process];
        last_[line.process] = line.at;
        return;
      case sim::what::paused:
        ++active_[line.process];
        return;
      case sim::what::resumed:
        if (active_[line.process] > 0) --active_[line.process];
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
  [[nodiscard]] int count(std::int32_t process) const {
    const auto found = active_.find(process);
    return found == active_.end() ? 0 : found->second;
  }
  [[nodiscard]] sim::moment end_of(std::int32_t process) const {
    const auto found = last_.find(process);
    return found == last_.end() ? sim::moment::min() : found->second;
  }
  [[nodiscard]] bool disturbed(std::int32_t process, sim::moment when) const {
    return count(process) > 0 || end_of(process) >= when;
  }

  std::map<std::int32_t, int> active_;  // nobody: everybody
  std::map<std::int32_t, sim::moment> last_;
};

}  // namespace holdfast::torture
