// What a command holds, and the guard over the command that runs meanwhile.
#pragma once

#include "cli/run/child.hpp"
#include "cli/signals.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::cli {

// What run, elect and multi run hold while their command runs: one lease, or several as one.
//
// Movable; const members from any thread while it stays in place.
class command_lease {
 public:
  explicit command_lease(lease one) noexcept : held_(std::move(one)) {}
  explicit command_lease(multi_lease several) noexcept : held_(std::move(several)) {}

  [[nodiscard]] time_point valid_until() const noexcept;
  // The shortest that an engine granted.
  [[nodiscard]] duration ttl() const noexcept;
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] fence_token fence() const noexcept;  // of the first
  result<void> release();

  // HOLDFAST_NAME, HOLDFAST_FENCE, HOLDFAST_CLAIM, each with a line per lock.
  [[nodiscard]] std::vector<std::string> variables() const;

 private:
  [[nodiscard]] std::vector<const lease*> leases() const;

  std::variant<lease, multi_lease> held_;
};

// Guards the command while it runs under the lock: passes signals on, stops when the command is
// stopped, and ends it before the lock can have another holder.
//
//   running  -> lost:   SIGTERM to the group, at the end of validity less the grace, or at once
//                       when the engine says that the lock is gone
//   lost     -> killed: SIGKILL to the group, when the grace is over and in any case 100 ms before
//                       the end of validity
//   any      -> ended:  the command has ended (after a loss: and its whole group)
//
// Used by the main thread.
class guard {
 public:
  guard(child& command, const command_lease& held, duration grace, signal_inbox& inbox,
        terminal& terminal);
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;

  struct verdict {
    bool lost = false;
    bool killed = false;  // SIGKILL was needed
    child::ending ending;
  };

  // Until the command has ended.
  verdict watch();
  // After that, for --at-least: waits until the time, a signal that ends the program, or a loss.
  void linger(time_point until);

 private:
  void check_lease();
  void read_signals();
  void pass_on(const signal_inbox::message& message);
  void follow_stop(int number);
  void kill_group() noexcept;
  [[nodiscard]] time_point notice_begins() const;
  [[nodiscard]] time_point next_step() const;
  void wait_for_something(time_point until) noexcept;
  void notice_loss() const noexcept;

  child& child_;
  const command_lease& lease_;
  const duration grace_;
  signal_inbox& inbox_;
  terminal& terminal_;
  const std::stop_token lost_;
  // On CLOCK_BOOTTIME, which goes on counting while the machine is suspended: a time-out of poll()
  // would be late by the length of a suspend.
  runtime::descriptor alarm_;
  runtime::descriptor lost_event_;  // written when lost() fires

  time_point valid_until_ = time_point::max();  // the last that was known
  std::optional<time_point> kill_at_;           // set by a loss
  bool killed_ = false;
  bool end_asked_ = false;  // by a signal, while lingering
};

}  // namespace holdfast::cli
