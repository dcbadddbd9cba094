// No lost wake-up: with nobody holding a resource and an undisturbed waiter, somebody is granted
// within a bound. What counts is not the time waited, which contention may make long, but the time
// it is free while somebody waits. A holder that was killed or cut off keeps it for its ttl, which
// the bound includes.
#pragma once

#include "sim/checker.hpp"
#include "torture/checkers/disturbances.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace holdfast::torture {

class wake_ups final : public sim::checker {
 public:
  explicit wake_ups(const rules& known) : checker(known.facts), bound_(known.wake_bound) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "no lost wake-up"; }

  void see(const sim::record& line) override {
    disturbances_.see(line);
    switch (line.kind) {
      case sim::what::acquire_invoked:
        if (line.number == 1) waiting_[line.hold] = {line.at, line.process, line.resource};
        return;
      case sim::what::acquire_failed:
        look(line.at, line.resource);
        waiting_.erase(line.hold);
        return;
      case sim::what::acquire_granted:
        look(line.at, line.resource);
        waiting_.erase(line.hold);
        places_[line.resource].holders.insert(line.hold);
        return;
      case sim::what::validity_ended: {
        place& at = places_[line.resource];
        if (at.holders.erase(line.hold) > 0 && at.holders.empty()) at.free_since = line.at;
        return;
      }
      case sim::what::killed:
        std::erase_if(waiting_,
                      [&](const auto& each) { return each.second.process == line.process; });
        return;
      default:
        return;
    }
  }
  void finish(sim::moment now) override {
    for (const auto& each : places_) look(now, each.first);
  }

 private:
  struct waiter {
    sim::moment since{};
    std::int32_t process = sim::nobody;
    std::int32_t resource = sim::nobody;
  };
  struct place {
    std::set<std::int32_t> holders;
    sim::moment free_since{};
  };

  void look(sim::moment now, std::int32_t resource) {
    const place& at = places_[resource];
    if (!at.holders.empty()) return;
    for (const auto& [hold, each] : waiting_) {
      if (each.resource != resource || disturbances_.now(each.process)) continue;
      const sim::moment from =
          std::max({at.free_since, each.since, disturbances_.last(each.process)});
      if (now - from <= bound_) continue;
      return fail(
          now,
          "resource " + std::to_string(resource) + ": free and waited for by " +
              std::to_string(hold) + " for " +
              std::to_string(
                  std::chrono::duration_cast<std::chrono::milliseconds>(now - from).count()) +
              " ms",
          {hold});
    }
  }

  const duration bound_;
  disturbances disturbances_;
  std::map<std::int32_t, waiter> waiting_;
  std::map<std::int32_t, place> places_;
};

}  // namespace holdfast::torture
