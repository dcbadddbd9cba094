// No silent loss: a client that stops holding without having asked for it is notified: at the
// latest when its validity ends, by a local timer and whatever the network does, and immediately
// when the server answers a renewal with "not yours". And what was lost stays lost.
#pragma once

#include "sim/checker.hpp"
#include "sim/checkers/renewals.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class silent_loss final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no silent loss"; }

  void see(const record& line) override {
    overdue(line.at);
    const auto answered = renewals_.see(line);
    if (answered && answered->state == spi::hold_state::lost) {
      untold_.try_emplace(answered->hold, waiting{line.process, line.at + world().lateness});
    }
    switch (line.kind) {
      case what::validity_began:
        if (told_.contains(line.hold)) {
          fail(line.at, "hold " + std::to_string(line.hold) + " is valid again after its loss");
        }
        untold_.erase(line.hold);
        return;
      case what::validity_ended:
        if (!told_.contains(line.hold)) {
          untold_[line.hold] = {line.process, line.at + world().lateness};
        }
        return;
      case what::lost_told:
        told_.insert(line.hold);
        untold_.erase(line.hold);
        return;
      case what::release_invoked:
      case what::detach_invoked:
        untold_.erase(line.hold);
        return;
      case what::paused:
        paused_.insert(line.process);
        return;
      case what::resumed:
        paused_.erase(line.process);
        for (auto& [hold, each] : untold_) {
          if (each.process == line.process) each.deadline = line.at + world().lateness;
        }
        return;
      case what::killed:
        std::erase_if(untold_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return;
      default:
        return;
    }
  }

  void finish(moment now) override { overdue(now); }

 private:
  struct waiting {
    std::int32_t process = nobody;
    moment deadline{};
  };

  void overdue(moment now) {
    for (const auto& [hold, each] : untold_) {
      if (now <= each.deadline || paused_.contains(each.process)) continue;
      fail(now, "hold " + std::to_string(hold) + " of client " + std::to_string(each.process) +
                    " ended and nobody told it");
    }
  }

  renewals renewals_;
  std::map<std::int32_t, waiting> untold_;
  std::set<std::int32_t> told_;
  std::set<std::int32_t> paused_;
};

}  // namespace holdfast::sim
