// Watches over the command while it runs under the lock: passes signals on, follows it when it is
// stopped, and ends it before the lock can have another holder.
//
//   running  -> lost:   SIGTERM to the group, at the end of validity less the grace, or at once
//                       when the engine says that the lock is gone
//   lost     -> killed: SIGKILL to the group, when the grace is over and in any case 100 ms before
//                       the end of validity
//   any      -> ended:  the command has ended (after a loss: and its whole group)
#pragma once

#include "cli/child.hpp"
#include "cli/command_lease.hpp"
#include "cli/descriptor.hpp"
#include "cli/signal_inbox.hpp"
#include "cli/terminal.hpp"

#include <holdfast/clock.hpp>

#include <atomic>
#include <optional>
#include <stop_token>

namespace holdfast::cli {

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
  // After that, for --at-least: until the time, a signal that ends things, or a loss.
  void linger(time_point until);

 private:
  void check_lease();
  void read_signals();
  void pass_on(const signal_inbox::message& message);
  void follow_stop(int number);
  void kill_group() noexcept;
  [[nodiscard]] time_point next_step() const;
  void wait_for_something(time_point until);

  child& child_;
  const command_lease& lease_;
  const duration grace_;
  signal_inbox& inbox_;
  terminal& terminal_;
  const std::stop_token lost_;
  alarm_clock alarm_;
  descriptor lost_event_;  // written when lost() fires

  time_point valid_until_ = time_point::max();  // the last that was known
  std::optional<time_point> kill_at_;           // set by a loss
  bool killed_ = false;
  bool end_asked_ = false;  // by a signal, while lingering
};

}  // namespace holdfast::cli
