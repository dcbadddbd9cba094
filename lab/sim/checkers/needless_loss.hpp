// A hold that could be renewed is kept: where nothing has disturbed its client for as long as the
// renewals need, a lease that renews itself is not lost; and a renewal without an answer is sent again
// after a tenth of the ttl at the latest, as long as the hold is valid.
#pragma once

#include "sim/checker.hpp"
#include "sim/checkers/renewals.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class needless_loss final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no needless loss"; }

  void see(const record& line) override {
    overdue(line.at);
    repeat(line);
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
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

  struct missed {
    std::int32_t process = nobody;
    duration allowed{};
    moment due{};
  };

  // Renewals without an answer, and what ends the need to repeat them.
  void repeat(const record& line) {
    const auto answered = renewals_.see(line);
    if (answered && answered->renewed && answered->state == spi::hold_state::unknown) {
      const duration allowed = answered->ttl / 10 + answered->ttl / 100 + world().round_trip;
      missed_[line.claim] = {line.process, allowed, line.at + allowed};
    }
    const auto of_process = [&](const auto& each) { return each.second.process == line.process; };
    switch (line.kind) {
      case what::renewal_sent:
      case what::attempt_answered:  // another proof
      case what::validity_ended:
      case what::lost_told:
      case what::release_invoked:
      case what::detach_invoked:
      case what::leave_sent:
        missed_.erase(line.claim);
        return;
      case what::killed:
      case what::closed:
        std::erase_if(missed_, of_process);
        return;
      case what::paused:
        paused_.insert(line.process);
        return;
      case what::resumed:
        paused_.erase(line.process);
        for (auto& [claim, each] : missed_) {
          if (each.process == line.process) each.due = line.at + each.allowed;
        }
        return;
      default:
        return;
    }
  }

  void overdue(moment now) {
    for (const auto& [claim, each] : missed_) {
      if (now <= each.due || paused_.contains(each.process)) continue;
      fail(now, "claim " + std::to_string(claim) + " of client " + std::to_string(each.process) +
                    " is not renewed again after one renewal without an answer");
    }
  }

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
  renewals renewals_;
  std::map<std::int32_t, missed> missed_;  // by claim
  std::set<std::int32_t> paused_;
  std::set<std::int32_t> closed_;
  int troubles_ = 0;
  moment quiet_since_{};
  bool void_ = false;
};

}  // namespace holdfast::sim
