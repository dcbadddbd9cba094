// A lock stays blocked after an abnormal end: if a lock delay was requested, nobody else is let in
// for that long after a hold was lost, or its client died.
#pragma once

#include "sim/checker.hpp"

#include <algorithm>
#include <map>

namespace holdfast::sim {

class lock_delay final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "lock delay"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
        holds_[line.hold] = {line.process, line.resource, line.claim, line.lock_delay};
        return;
      case what::validity_began:
        holds_[line.hold].seen_valid = true;
        return;
      case what::validity_ended:
        holds_[line.hold].ended = std::min(line.at, line.until);
        return;
      case what::lost_told:
        if (line.number == 0) block(holds_[line.hold], holds_[line.hold].ended);
        holds_.erase(line.hold);
        return;
      case what::release_invoked:
      case what::detach_invoked:
        holds_.erase(line.hold);
        return;
      case what::killed:
        for (const auto& [number, each] : holds_) {
          if (each.process != line.process || !each.seen_valid) continue;
          // It may have been paused until its hold had run out.
          block(each, each.ended == moment{} ? line.at : each.ended);
        }
        return;
      case what::server_granted:
        granted(line);
        return;
      case what::state_lost:
      case what::clock_jumped:
        void_ = true;
        return;
      default:
        return;
    }
  }

 private:
  struct hold {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    std::int32_t claim = nobody;
    duration lock_delay{};
    bool seen_valid = false;
    moment ended{};
  };
  struct closure {
    moment until{};
    std::int32_t claim = nobody;
  };

  // The server counts by its own clock, which may be a hundredth fast.
  void block(const hold& by, moment from) {
    const auto kind = world().resources[static_cast<std::size_t>(by.resource)].kind;
    // Readers and permits may be let in beside one that has not ended yet.
    if (by.lock_delay == duration{0} || !by.seen_valid || kind != resource_kind::mutex) return;
    closure& at = closures_[by.resource];
    const moment until = from + by.lock_delay - by.lock_delay / 100;
    if (until > at.until) at = {until, by.claim};
  }
  void granted(const record& line) {
    const closure& at = closures_[line.resource];
    if (void_ || line.at >= at.until || line.claim == at.claim) return;
    fail(line.at, "resource " + std::to_string(line.resource) + ": claim " +
                      std::to_string(line.claim) + " was granted although claim " +
                      std::to_string(at.claim) + " ended abnormally just before");
  }

  std::map<std::int32_t, hold> holds_;
  std::map<std::int32_t, closure> closures_;  // by resource
  bool void_ = false;
};

}  // namespace holdfast::sim
