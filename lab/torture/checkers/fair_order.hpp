// Fair: nobody is granted before a waiter that was already in the queue when it asked. A client
// that was told its place is in the queue for certain; in histories from other sources, where
// nobody is told, a client is taken to be in the queue a margin after it asked. Judged only if
// nothing disturbed the waiter that was passed over, including shortly before it asked: a client
// that is cut off or stopped may lose its turn, its connections come one after another, also at its
// start, and a server that is gone may forget the queue; and not just after an offer may have run out.
#pragma once

#include "sim/checker.hpp"
#include "torture/checkers/disturbances.hpp"

#include <holdfast/result.hpp>

#include <chrono>
#include <map>
#include <optional>

namespace holdfast::torture {

class fair_order final : public sim::checker {
 public:
  explicit fair_order(const rules& known)
      : checker(known.facts), margin_(known.order_margin), lapses_(world()) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "FIFO"; }

  void see(const sim::record& line) override {
    disturbances_.see(line);
    lapses_.see(line, disturbances_);
    switch (line.kind) {
      case sim::what::started:
        started_[line.process] = line.at;
        return;
      case sim::what::acquire_invoked:
        if (line.fair) waiting_[line.hold] = {line.at, line.until, line.process, line.resource};
        return;
      case sim::what::attempt_answered: {
        places_told_ = true;
        const auto found = waiting_.find(line.hold);
        if (found != waiting_.end()) found->second.in_line = line.at;
        return;
      }
      case sim::what::acquire_failed:
        // A cancelled waiter may have left the queue before it was passed over.
        if (line.number == static_cast<std::int64_t>(errc::timed_out)) convict(line);
        waiting_.erase(line.hold);
        return;
      case sim::what::killed:
        std::erase_if(waiting_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return;
      case sim::what::acquire_granted:
        convict(line);
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
    std::optional<sim::moment> in_line{};  // when it was told so
    std::int32_t passed_by = sim::nobody;  // a hold
  };

  // A holder releases only after it has been told of its grant. So a waiter that has not been told
  // yet was not granted before this one.
  void granted(const sim::record& line) {
    const auto self = waiting_.find(line.hold);
    if (self == waiting_.end()) return;
    const waiter winner = self->second;
    waiting_.erase(self);
    for (auto& [hold, each] : waiting_) {
      if (each.resource != winner.resource || each.passed_by != sim::nobody) continue;
      if (!each.in_line && places_told_) continue;
      const sim::moment certain = each.in_line ? *each.in_line : each.since + margin_;
      if (certain > winner.since) continue;
      // Gives up, or is about to.
      const duration slack = each.in_line ? duration{} : margin_;
      if (each.patience != forever && each.since + each.patience <= line.at + slack) continue;
      if (connects(each) || disturbances_.since(winner.process, each.since)) continue;
      if (lapses_.near(each.resource, line.at)) continue;
      each.passed_by = line.hold;
    }
  }
  // It may have asked before the engine could notify it: then it is not connected, as G7.1 says.
  [[nodiscard]] bool connects(const waiter& who) const {
    const sim::moment before = who.since - connecting;
    const auto started = started_.find(who.process);
    return disturbances_.since(who.process, before) ||
           (started != started_.end() && started->second >= before);
  }
  // It was passed over, and was still waiting.
  void convict(const sim::record& line) {
    const auto found = waiting_.find(line.hold);
    if (found == waiting_.end() || found->second.passed_by == sim::nobody) return;
    fail(line.at,
         "resource " + std::to_string(line.resource) + ": hold " +
             std::to_string(found->second.passed_by) + " was granted before " +
             std::to_string(line.hold) + " that was in line when it asked",
         {line.hold, found->second.passed_by});
  }

  static constexpr duration connecting = std::chrono::seconds(2);

  const duration margin_;
  bool places_told_ = false;  // to some
  disturbances disturbances_;
  lapses lapses_;
  std::map<std::int32_t, sim::moment> started_;  // by process
  std::map<std::int32_t, waiter> waiting_;
};

}  // namespace holdfast::torture
