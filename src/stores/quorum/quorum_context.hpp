// The members of a quorum and what all rounds share: time, limits, the clocks of the members.
#pragma once

#include "stores/quorum/clocks.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::quorum {

struct member {
  std::string name;  // for people
  std::shared_ptr<spi::store> store;
};

struct limits {
  // How long one member is waited for in a round: a twentieth of the lease, within these.
  duration shortest_answer = std::chrono::milliseconds(50);
  duration longest_answer = std::chrono::milliseconds(500);
  // When a claim that was turned away asks again, at the latest; where members were split, after
  // at most the shorter.
  duration recheck = std::chrono::milliseconds(100);
  duration split_recheck = std::chrono::milliseconds(20);
  // What a member did not answer is left there again after this, twice as long each time.
  duration first_pause = std::chrono::milliseconds(50);
  duration longest_pause = std::chrono::seconds(2);
  std::size_t withdrawals = 10'000;  // at once; what is beyond it ends with its ttl
};

// Thread-safe where its parts are; the list of members never changes.
struct quorum_context {
  std::shared_ptr<spi::runtime> runtime;
  std::vector<member> members;
  quorum::limits limit{};
  quorum::clocks clocks;
  std::atomic<bool> closed{false};
  std::atomic<bool> duplicate{false};  // two members are one server: nothing is granted any more
  std::atomic<std::size_t> withdrawals{0};
  std::vector<std::atomic<bool>> doubtful;  // members that did not answer when last asked

  quorum_context(std::shared_ptr<spi::runtime> time, std::vector<member> given,
                 quorum::limits named)
      : runtime(std::move(time)),
        members(std::move(given)),
        limit(named),
        clocks(members.size()),
        doubtful(members.size()) {}

  // What was asked of a member was answered, or was not.
  void heard(std::size_t member, bool answer) noexcept {
    doubtful[member].store(!answer, std::memory_order_relaxed);
  }
  [[nodiscard]] bool doubts(std::size_t member) const noexcept {
    return doubtful[member].load(std::memory_order_relaxed);
  }

  [[nodiscard]] duration answer_limit(duration ttl) const noexcept {
    return std::clamp(ttl / 20, limit.shortest_answer, limit.longest_answer);
  }
  [[nodiscard]] spi::op_context soon(time_point deadline, duration ttl) const {
    return {.deadline = std::min(deadline, runtime->now() + answer_limit(ttl))};
  }
  // For votes: a member that cannot be reached has answered. Not at once: rounds follow each other, and
  // each of them would connect to those that are down.
  [[nodiscard]] spi::op_context reaching(time_point deadline, duration ttl) const {
    spi::op_context context = soon(deadline, ttl);
    context.reach_by = context.deadline;
    return context;
  }
};

// Two clocks' rates may differ by this much over a lease.
constexpr duration margin_of(duration ttl) noexcept {
  return ttl / 100 + std::chrono::milliseconds(2);
}

}  // namespace holdfast::quorum
