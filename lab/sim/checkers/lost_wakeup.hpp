// No lost wake-up: with a free resource and a live waiter, somebody gets in within the time of a
// push, or of a re-check where pushes were disturbed. What counts is not the time waited, which
// contention may make long, but the time it is free while somebody waits. And where nothing is
// disturbed, a granted claim learns of it within the same time, whether from an answer or from a
// push that overtook it.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class lost_wakeup final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no lost wake-up"; }

  void see(const record& line) override;
  void finish(moment now) override;

 private:
  struct holder {
    std::int32_t process = nobody;
    moment until{};
    duration lock_delay{};
  };
  struct place {
    std::map<std::int32_t, holder> holders;    // by claim
    std::map<std::int32_t, moment> forgotten;  // by process: until when it may still trust its hold
    moment free_since{};
    bool left = true;     // the last end was a release, which pushes at once
    bool certain = true;  // false: the server's clock was set, ends are not known
  };
  struct waiter {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    moment since{};
  };

  static void forget(place& at);
  void told(const record& line);
  void look(place& at, std::int32_t resource, moment now);

  std::map<std::int32_t, place> places_;
  std::map<std::int32_t, waiter> waiters_;  // by acquisition
  std::map<std::int32_t, moment> granted_;  // by acquisition: when, in a calm world
  std::set<std::int32_t> paused_;
  int troubles_ = 0;
  moment calm_since_{};
};

}  // namespace holdfast::sim
