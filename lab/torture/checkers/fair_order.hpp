// Fair: who asked so much earlier that its claim must have been in line is granted earlier. Judged
// only where nothing disturbed the one that was passed over: a client that is cut off or stopped
// may lose its turn, and a server that is gone may forget the line.
#pragma once

#include "sim/checker.hpp"
#include "torture/checkers/disturbances.hpp"
#include "torture/checkers/rules.hpp"

#include <map>

namespace holdfast::torture {

class fair_order final : public sim::checker {
 public:
  explicit fair_order(const rules& known) : checker(known.facts), margin_(known.order_margin) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "FIFO"; }

  void see(const sim::record& line) override {
    disturbances_.see(line);
    switch (line.kind) {
      case sim::what::acquire_invoked:
        if (line.fair && line.number == 1) {
          waiting_[line.hold] = {line.at, line.until, line.process, line.resource};
        }
        return;
      case sim::what::acquire_failed:
        waiting_.erase(line.hold);
        return;
      case sim::what::killed:
        std::erase_if(waiting_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return;
      case sim::what::acquire_granted:
        granted(line);
        return;
      default:
        return;
    }
  }

 private:
  struct waiter {
    sim::moment since{};
    duration patience{};
    std::int32_t process = sim::nobody;
    std::int32_t resource = sim::nobody;
  };

  void granted(const sim::record& line) {
    const auto self = waiting_.find(line.hold);
    if (self == waiting_.end()) return;
    const waiter winner = self->second;
    waiting_.erase(self);
    for (const auto& [hold, each] : waiting_) {
      if (each.resource != winner.resource || each.since + margin_ > winner.since) continue;
      // About to give up, or giving up already.
      if (each.patience != forever && each.since + each.patience <= line.at + margin_) continue;
      if (disturbances_.since(each.process, each.since) ||
          disturbances_.since(winner.process, each.since)) {
        continue;
      }
      return fail(line.at,
                  "resource " + std::to_string(line.resource) + ": hold " +
                      std::to_string(line.hold) + " was granted before " + std::to_string(hold) +
                      " that had asked earlier and still waits",
                  {hold, line.hold});
    }
  }

  const duration margin_;
  disturbances disturbances_;
  std::map<std::int32_t, waiter> waiting_;
};

}  // namespace holdfast::torture
