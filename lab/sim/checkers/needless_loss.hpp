// A hold that could be renewed is kept: where nothing has disturbed its client for as long as the
// renewals need, a lease that renews itself is not lost.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class needless_loss final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no needless loss"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_granted:
        holds_[line.hold] = {line.number != 0, line.until, line.at};
        return;
      case what::trouble_began:
        ++troubles_;
        return;
      case what::trouble_ended:
        if (--troubles_ == 0) quiet_since_ = line.at;
        return;
      case what::closed:
        closed_.insert(line.process);
        return;
      case what::state_lost:
      case what::clock_jumped:
        void_ = true;
        return;
      case what::lost_told:
        lost(line);
        return;
      default:
        return;
    }
  }

 private:
  struct hold {
    bool renewed = true;
    duration ttl{};
    moment since{};
  };

  void lost(const record& line) {
    const hold& each = holds_[line.hold];
    if (!each.renewed || troubles_ > 0 || void_ || closed_.contains(line.process)) return;
    // The last renewal that could fail was sent before the quiet began.
    const moment undisturbed =
        quiet_since_ + (world().calm ? duration{0} : world().recovery + each.ttl);
    if (line.at > undisturbed && each.since >= quiet_since_) {
      fail(line.at, "hold " + std::to_string(line.hold) + " of client " +
                        std::to_string(line.process) + " was lost although nothing disturbed it");
    }
  }

  std::map<std::int32_t, hold> holds_;
  std::set<std::int32_t> closed_;
  int troubles_ = 0;
  moment quiet_since_{};
  bool void_ = false;
};

}  // namespace holdfast::sim
