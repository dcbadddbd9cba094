// No lost wake-up: with a free resource and a live waiter, somebody gets in within the time of a
// push, or of a re-check where pushes were disturbed. Not the time waited counts, which contention
// may make long, but the time it is free while somebody waits.
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
    moment until{};
    duration shut{};
  };
  struct place {
    std::map<std::int32_t, holder> holders;  // by claim
    moment free_since{};
    bool left = true;     // the last end was a release, which pushes at once
    bool certain = true;  // false: the server's clock was set, ends are not known
  };
  struct waiter {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    moment since{};
  };

  void look(place& at, std::int32_t resource, moment now);

  std::map<std::int32_t, place> places_;
  std::map<std::int32_t, waiter> waiters_;  // by acquisition
  std::set<std::int32_t> paused_;
  int troubles_ = 0;
  moment calm_since_{};
};

}  // namespace holdfast::sim
