// Who holds what with a valid lease at this moment, for the checkers of exclusion. A downgrade ends
// exclusiveness when it is requested; an upgrade begins it when it is answered.
#pragma once

#include "sim/record.hpp"

#include <map>

namespace holdfast::sim {

struct valid_holder {
  std::int32_t hold = nobody;
  std::int32_t process = nobody;
  std::int32_t resource = nobody;
  spi::mode mode = spi::mode::exclusive;
  std::uint32_t permits = 1;
  std::uint64_t fence = 0;
};

class valid_holders {
 public:
  using table = std::map<std::int32_t, valid_holder>;

  // True if a hold became valid, or excludes more than before: then look for another one.
  bool see(const record& line) {
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
        holds_[line.hold] = {line.hold, line.process, line.resource,
                             line.mode, line.permits, line.fence};
        return false;
      case what::validity_began:
        if (line.number != 0) return false;  // no guarantee stands behind it
        valid_[line.hold] = holds_[line.hold];
        return true;
      case what::validity_ended:
      case what::release_invoked:
      case what::detach_invoked:
        valid_.erase(line.hold);
        return false;
      case what::change_invoked:
        if (line.mode == spi::mode::shared) set_mode(line);
        return false;
      case what::change_answered:
        if (line.number != 0 || line.mode != spi::mode::exclusive) return false;
        set_mode(line);
        return true;
      case what::killed: {
        std::erase_if(valid_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return false;
      }
      case what::state_lost:
      case what::clock_jumped:
        valid_.clear();
        return false;
      default:
        return false;
    }
  }

  [[nodiscard]] const table& valid() const noexcept { return valid_; }

 private:
  void set_mode(const record& line) {
    holds_[line.hold].mode = line.mode;
    if (const auto found = valid_.find(line.hold); found != valid_.end()) {
      found->second.mode = line.mode;
    }
  }

  table holds_;
  table valid_;
};

}  // namespace holdfast::sim
