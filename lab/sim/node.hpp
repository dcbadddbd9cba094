// A machine of a world, client or server: it has a clock and may stand still, for a while or, if it
// is dead, for good.
#pragma once

#include "sim/node_clock.hpp"

#include <cstdint>
#include <vector>

namespace holdfast::sim {

class node {
 public:
  explicit node(node_clock clock) noexcept : clock_(clock) {}

  [[nodiscard]] const node_clock& clock() const noexcept { return clock_; }
  [[nodiscard]] bool paused() const noexcept { return paused_; }

  void jump_clock(duration by) noexcept { clock_.jump(by); }

 private:
  friend class event_loop;

  node_clock clock_;
  bool paused_ = false;
  std::vector<std::uint64_t> deferred_;  // events that came while it stood still, in order
};

}  // namespace holdfast::sim
