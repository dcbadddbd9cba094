// Who believes to hold what at this moment, for the checkers of exclusion. A downgrade ends the
// belief in exclusiveness when it is asked for; an upgrade begins it when it is answered.
#pragma once

#include "sim/record.hpp"

#include <map>

namespace holdfast::sim {

struct believer {
  std::int32_t hold = nobody;
  std::int32_t process = nobody;
  std::int32_t resource = nobody;
  spi::mode mode = spi::mode::exclusive;
  std::uint32_t permits = 1;
  std::uint64_t fence = 0;
};

class believers {
 public:
  using table = std::map<std::int32_t, believer>;

  // True if somebody believes more than before: the moment to look for another.
  bool see(const record& line) {
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
        holds_[line.hold] = {line.hold, line.process, line.resource,
                             line.mode, line.permits, line.fence};
        return false;
      case what::belief_began:
        if (line.number != 0) return false;  // no guarantee stands behind it
        believing_[line.hold] = holds_[line.hold];
        return true;
      case what::belief_ended:
      case what::release_invoked:
      case what::detach_invoked:
        believing_.erase(line.hold);
        return false;
      case what::change_invoked:
        if (line.mode == spi::mode::shared) set_mode(line);
        return false;
      case what::change_answered:
        if (line.number != 0 || line.mode != spi::mode::exclusive) return false;
        set_mode(line);
        return true;
      case what::killed: {
        std::erase_if(believing_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return false;
      }
      case what::state_lost:
      case what::clock_jumped:
        believing_.clear();
        return false;
      default:
        return false;
    }
  }

  [[nodiscard]] const table& believing() const noexcept { return believing_; }

 private:
  void set_mode(const record& line) {
    holds_[line.hold].mode = line.mode;
    if (const auto found = believing_.find(line.hold); found != believing_.end()) {
      found->second.mode = line.mode;
    }
  }

  table holds_;
  table believing_;
};

}  // namespace holdfast::sim
