// Virtual time: one binary heap of events, ordered by time and then by the order in which they were
// made. Nothing else moves the clock of a world, so a seed gives the same run every time.
//
// Not thread-safe: a world lives on one thread.
#pragma once

#include "sim/node.hpp"

#include <holdfast/spi/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace holdfast::sim {

// What wakes a node: on resume the two kinds may come in any order; within each kind the order is
// kept.
enum class event_class : std::uint8_t { timer, receipt };

// How a node that was paused finds what arrived in the meantime.
enum class resume_order : std::uint8_t { as_it_came, timers_first, receipts_first };

class event_loop {
 public:
  using event_id = std::uint64_t;

  [[nodiscard]] moment now() const noexcept { return now_; }

  // Runs the task at the time, or when its node has been resumed. step() runs events in the order
  // of their times; a caller that runs them by hand must at least keep the order within a channel
  // of a node.
  event_id at(moment when, node& owner, event_class kind, spi::task work,
              std::uint32_t channel = timers);
  void cancel(event_id id) noexcept;

  // Channels of a client or a server; a link numbers its own from here on.
  static constexpr std::uint32_t timers = 0;
  static constexpr std::uint32_t notices = 1;
  static constexpr std::uint32_t first_of_links = 8;

  // Runs the next event, if it comes before the limit.
  bool step(moment limit);

  // For callers that choose the order themselves.
  struct scheduled {
    event_id id = 0;
    moment when{};
    std::uint64_t sequence = 0;
    node* owner = nullptr;
    event_class kind = event_class::timer;
    std::uint32_t channel = 0;
    std::uint64_t label = 0;  // the same in two runs only if its creator had the same past
  };
  // Every event that has neither run nor been cancelled, in no order.
  void list(std::vector<scheduled>& into) const;
  // Runs this one now, although others may be due before it.
  void run(event_id id);
  void advance(moment to) noexcept { now_ = std::max(now_, to); }
  // Events made from now on have this sequence number or a greater one.
  [[nodiscard]] std::uint64_t next_sequence() const noexcept { return next_sequence_; }

  void pause(node& target) noexcept;
  void resume(node& target, resume_order order);

  // Events of a node that have neither run nor been cancelled.
  [[nodiscard]] std::size_t pending(const node& owner) const noexcept;
  [[nodiscard]] std::size_t pending() const noexcept { return live_; }

  // A number that two runs share only if they ran the same events at the same times.
  [[nodiscard]] std::uint64_t hash() const noexcept { return hash_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  void mix(std::uint64_t value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3U; }

  // Destroys every event unrun; more may be made by that, and are destroyed too.
  void clear();

 private:
  struct entry {
    moment when;
    std::uint64_t sequence;
    event_id id;
  };
  struct slot {
    spi::task work;
    node* owner = nullptr;
    moment when{};
    std::uint64_t sequence = 0;
    std::uint64_t label = 0;
    std::uint32_t generation = 1;
    std::uint32_t channel = 0;
    event_class kind = event_class::timer;
    bool used = false;
  };

  static bool later(const entry& left, const entry& right) noexcept {
    return left.when != right.when ? left.when > right.when : left.sequence > right.sequence;
  }
  slot* find(event_id id) noexcept;
  spi::task take(event_id id) noexcept;
  void push(moment when, event_id id);
  void perform(event_id id);

  moment now_{};
  std::uint64_t next_sequence_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325U;
  std::uint64_t steps_ = 0;
  std::size_t live_ = 0;
  const node* running_ = nullptr;
  std::uint64_t made_ = 0;  // by the event that runs
  std::vector<entry> heap_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace holdfast::sim
