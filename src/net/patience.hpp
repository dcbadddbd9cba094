// How long a request waits: for its answer, and for a connection to send it on.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

namespace holdfast::net {

// The same as in op_context; a deadline alone waits for a connection until then.
struct patience {
  patience() = default;
  patience(time_point until) : deadline(until) {}
  patience(const spi::op_context& context)
      : deadline(context.deadline), reach_by(context.reach_by), at_once(context.at_once) {}

  time_point deadline{};
  time_point reach_by = time_point::max();
  bool at_once = false;

  // A failed attempt to connect is an answer.
  [[nodiscard]] bool takes_failure() const noexcept { return reach_by != time_point::max(); }
  // When to look at what has no connection yet.
  [[nodiscard]] time_point first_end() const noexcept {
    return reach_by < deadline ? reach_by : deadline;
  }
};

// A failure of a request that was never sent.
inline error unsent(error why) {
  why.unsent = why == errc::unavailable;
  return why;
}

}  // namespace holdfast::net
