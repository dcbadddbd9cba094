// The members of a quorum and what all rounds share: time, limits, the clocks of the members.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::quorum {

// What the members' clocks show now, as far as known from their answers: a fence
// proposed near all of them is accepted by all of them, and the grant needs one round
// trip instead of two. Thread-safe.
class clocks {
 public:
  explicit clocks(std::size_t members) : ahead_(members) {
    for (auto& each : ahead_) each.store(unheard, std::memory_order_relaxed);
  }

  void heard(std::size_t member, time_point now, spi::server_time at) noexcept {
    if (at == spi::server_time{}) return;
    ahead_[member].store((at.time_since_epoch() - now.time_since_epoch()).count(),
                         std::memory_order_relaxed);
  }

  // Microseconds of the clock that is furthest ahead; 0: no answer yet.
  [[nodiscard]] std::uint64_t proposal(time_point now) const noexcept {
    duration::rep furthest = unheard;
    for (const auto& each : ahead_) {
      furthest = std::max(furthest, each.load(std::memory_order_relaxed));
    }
    if (furthest == unheard) return 0;
    const auto shown =
        std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch() + duration(furthest));
    return shown.count() > 0 ? static_cast<std::uint64_t>(shown.count()) : 0;
  }

 private:
  static constexpr duration::rep unheard = std::numeric_limits<duration::rep>::min();

  std::vector<std::atomic<duration::rep>> ahead_;  // relative to our own clock
};

struct member {
  std::string name;  // for people
  std::shared_ptr<spi::store> store;
};

struct limits {
  // How long a round waits for one member: a twentieth of the lease, within these limits.
  duration shortest_answer = std::chrono::milliseconds(50);
  duration longest_answer = std::chrono::milliseconds(500);
  // When a claim that was turned away asks again, at the latest; if the members were split, after
  // at most the shorter time.
  duration recheck = std::chrono::milliseconds(100);
  duration split_recheck = std::chrono::milliseconds(20);
  // A leave that a member did not answer is repeated after this pause, twice as long each time.
  duration first_pause = std::chrono::milliseconds(50);
  duration longest_pause = std::chrono::seconds(2);
  std::size_t withdrawals = 10'000;  // at the same time; claims beyond this end with their ttl
};

// As thread-safe as its parts; the list of members never changes.
struct quorum_context {
  std::shared_ptr<spi::runtime> runtime;
  std::vector<member> members;
  quorum::limits limit{};
  quorum::clocks clocks;
  std::atomic<bool> closed{false};
  std::atomic<bool> duplicate{false};  // two members are one server: nothing is granted any more
  std::atomic<std::size_t> withdrawals{0};
  std::vector<std::atomic<bool>> doubtful;  // members that did not answer the last request

  quorum_context(std::shared_ptr<spi::runtime> time, std::vector<member> given,
                 quorum::limits named)
      : runtime(std::move(time)),
        members(std::move(given)),
        limit(named),
        clocks(members.size()),
        doubtful(members.size()) {}

  // A request to a member was answered, or was not.
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
  // For votes: an unreachable member counts as having answered. Not at once: rounds follow each
  // other, and each of them would connect to the members that are down.
  [[nodiscard]] spi::op_context reaching(time_point deadline, duration ttl) const {
    spi::op_context context = soon(deadline, ttl);
    context.reach_by = context.deadline;
    return context;
  }
};

// The rates of two clocks may differ by this much over a lease.
constexpr duration margin_of(duration ttl) noexcept {
  return ttl / 100 + std::chrono::milliseconds(2);
}

}  // namespace holdfast::quorum
