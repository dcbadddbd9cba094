// A machine of a world, client or server: it has a clock and may be paused, for a while or, if it
// is dead, forever.
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

  // A hash of everything this machine was given so far, and when: a machine is deterministic, so
  // two runs with the same hash left it in the same state.
  [[nodiscard]] std::uint64_t past() const noexcept { return past_; }
  void mark(std::uint64_t value) noexcept { past_ = mixed(past_, value); }

  static constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
    hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
    hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
    return hash ^ (hash >> 27U);
  }

 private:
  friend class event_loop;

  node_clock clock_;
  bool paused_ = false;
  std::uint64_t past_ = 1;
  std::vector<std::uint64_t> deferred_;  // events that arrived while it was paused, in order
};

}  // namespace holdfast::sim
