// Everybody finishes: once the troubles are over, every call of a live client is answered. The
// world ends long after the last answer is due.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class liveness final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "liveness"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_invoked:
      case what::adopt_invoked:
        acquiring_[line.acquisition] = line.process;
        return;
      case what::acquire_granted:
      case what::acquire_failed:
      case what::adopt_granted:
      case what::adopt_failed:
        acquiring_.erase(line.acquisition);
        return;
      case what::release_invoked:
        if (line.number != 0) releasing_[line.hold] = line.process;
        return;
      case what::detach_invoked:
        releasing_[line.hold] = line.process;
        return;
      case what::release_answered:
      case what::detach_answered:
        releasing_.erase(line.hold);
        return;
      case what::killed:
        dead_.insert(line.process);
        return;
      default:
        return;
    }
  }

  void finish(moment now) override {
    for (const auto& [acquisition, process] : acquiring_) {
      if (dead_.contains(process)) continue;
      fail(now, "acquisition " + std::to_string(acquisition) + " of client " +
                    std::to_string(process) + " was never answered");
    }
    for (const auto& [hold, process] : releasing_) {
      if (dead_.contains(process)) continue;
      fail(now, "the release of hold " + std::to_string(hold) + " of client " +
                    std::to_string(process) + " was never answered");
    }
  }

 private:
  std::map<std::int32_t, std::int32_t> acquiring_;  // acquisition to process
  std::map<std::int32_t, std::int32_t> releasing_;  // hold to process, where an answer is asked for
  std::set<std::int32_t> dead_;
};

}  // namespace holdfast::sim
