// When was the session certainly alive at the leader? What holders believe is counted from there.
//
// A ping or a read is answered by a follower that has lost its leader. What proves the session is an
// answered quorum write, but only for what happened before it: the leader learns from a follower's
// ping, every half tick, whose clients the follower has heard. An answered write that was sent a
// good half tick after the answer to another request shows that the leader has learned of that one:
// the session lives on from when that request was sent. A session that was just made proves itself, as
// it is made by a write. One that was only found again does not: a leader whose followers have left it
// for another one knows it still, and says so.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>

namespace holdfast::zookeeper {

// Not thread-safe.
class session_proof {
 public:
  // Requests that wait for a write behind them. With one kept per eighth of the spacing there are
  // never more.
  static constexpr std::size_t candidate_limit = 64;

  // A new session. `spacing`: longer than the half tick by which a leader hears of a follower's
  // clients.
  void begin(time_point greeting_sent, time_point now, duration spacing) {
    go_on(greeting_sent, now, spacing);
    date_ = greeting_sent;
  }
  // The same session on another connection.
  void go_on(time_point greeting_sent, time_point now, duration spacing) {
    spacing_ = spacing;
    candidates_.clear();
    candidates_.push_back({greeting_sent, now});
  }
  void forget() {
    candidates_.clear();
    date_ = time_point::min();
  }

  // In the order in which they were sent, all on one connection.
  void answered(time_point sent, time_point now, bool write) {
    if (write) {
      while (!candidates_.empty() && candidates_.front().answered + spacing_ <= sent) {
        date_ = std::max(date_, candidates_.front().sent);
        candidates_.pop_front();
      }
    }
    if (candidates_.size() >= candidate_limit) return;
    if (candidates_.empty() || candidates_.back().sent + spacing_ / 8 <= sent) {
      candidates_.push_back({sent, now});
    }
  }

  // The session lives at least until this plus its time-out. min: no proof.
  [[nodiscard]] time_point date() const noexcept { return date_; }

 private:
  struct candidate {
    time_point sent;
    time_point answered;
  };

  duration spacing_{};
  std::deque<candidate> candidates_;
  time_point date_ = time_point::min();
};

}  // namespace holdfast::zookeeper
