// Until when does a lease live, for certain? What holders believe is counted from there.
//
// A keepalive that is answered proves nothing by itself: a leader that has been replaced, or is stuck in
// its disk, goes on answering, and some versions answer for a lease that is gone. What proves it are
// three things together, all answered by one member:
//  1. a keepalive, with time left;
//  2. a linearizable read (or a write) of a key that hangs on the lease, sent with it or later: it is
//     answered only by way of the leader of now, and it shows that the key is there;
//  3. the same term in both answers, and in what that member last said before they were sent: so the
//     leader that took the keepalive is the one that answered the read.
// Then the lease lives for its whole time from when they were sent. For if that leader was replaced
// in between, it was after the read was sent; and a new leader extends every lease by its whole time.
#pragma once

#include <holdfast/clock.hpp>

#include <algorithm>
#include <cstdint>

namespace holdfast::etcd {

struct lease_evidence {
  std::uint64_t term_before = 0;  // 0: that member has said nothing yet on this connection
  std::uint64_t keepalive_term = 0;
  std::uint64_t read_term = 0;
  bool same_connection = false;

  [[nodiscard]] bool holds() const noexcept {
    return term_before != 0 && same_connection && term_before == keepalive_term &&
           keepalive_term == read_term;
  }
};

// Of one lease. Not thread-safe.
class lease_proof {
 public:
  // Made by a write that all agreed on: that needs no other proof.
  void begin(time_point sent, duration time) noexcept {
    date_ = sent;
    time_ = time;
  }
  void add(const lease_evidence& evidence, time_point sent, duration time) noexcept {
    if (!evidence.holds() || time <= duration{0}) return;
    date_ = std::max(date_, sent);
    time_ = time;
  }
  void forget() noexcept { date_ = time_point::min(); }

  [[nodiscard]] time_point date() const noexcept { return date_; }
  // min: no proof.
  [[nodiscard]] time_point until() const noexcept {
    return date_ == time_point::min() ? date_ : date_ + time_;
  }

 private:
  time_point date_ = time_point::min();
  duration time_{0};
};

}  // namespace holdfast::etcd
