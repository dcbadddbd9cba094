// A lease that the claims of one ttl share: granted when it is first needed, kept alive by the
// renewals of the claims on it, granted again when it is gone.
#pragma once

#include "stores/etcd/channel.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace holdfast::etcd {

// Until when does a lease live, for certain? The validity of holds is counted from there.
//
// A keepalive that is answered proves nothing by itself: a leader that has been replaced, or is
// stuck in its disk, goes on answering, and some versions answer for a lease that is gone. Three
// things together prove it, all answered by one member:
//  1. a keepalive, with time left;
//  2. a linearizable read (or a write) of a key that is attached to the lease, sent with it or
//     later: only the current leader can answer it, and it shows that the key is there;
//  3. the same term in both answers, and in what that member last said before they were sent: so the
//     leader that took the keepalive is the one that answered the read.
// Then the lease lives for its whole time from when they were sent: if that leader was replaced in
// between, it was after the read was sent, and a new leader extends every lease by its whole time.
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
  // Created by a write that went through consensus: that needs no other proof.
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

class lease_user {
 public:
  virtual ~lease_user() = default;
  // The cluster says that there is no such lease: the keys attached to it are gone. Under no lock.
  virtual void lease_ended(std::int64_t id) = 0;
};

// What a keepalive and the calls beside it prove.
struct lease_note {
  std::int64_t lease = 0;  // 0: nothing
  lease_evidence evidence;
  time_point sent{};
  duration time{0};
};

// Thread-safe.
class lease_keeper final : public std::enable_shared_from_this<lease_keeper> {
 public:
  lease_keeper(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<channel> way, duration wanted,
               std::weak_ptr<lease_user> user);

  // Returns its id; a lease is granted now if there is none.
  static task<result<std::int64_t>> ready(std::shared_ptr<lease_keeper> self, net::patience until);

  // Sends all together, with a keepalive if the proof is not fresh (or always, if `renews`). The
  // calls are linearizable reads or writes. Returns the answers to the calls; `found` is what they
  // prove, if they show a key that is attached to the lease: then accept() it.
  enum class renews : std::uint8_t { if_stale, always };
  static task<replies> ask(std::shared_ptr<lease_keeper> self, std::int64_t id,
                           std::vector<call> calls, renews how, net::patience until,
                           lease_note& found);

  void accept(const lease_note& found);

  // The cluster does not know the lease any more.
  void ended(std::int64_t id);

  // Whole seconds; 0: never granted.
  [[nodiscard]] duration time() const;
  [[nodiscard]] duration wanted() const noexcept { return wanted_; }
  // It lives at least until this, if `id` is the current one. min: no proof.
  [[nodiscard]] time_point proven_until(std::int64_t id) const;
  // When the calls left that proved it last.
  [[nodiscard]] time_point proven_at(std::int64_t id) const;
  [[nodiscard]] std::int64_t id() const;

  // Claims that are attached to it, or will be.
  void hold() noexcept { ++holders_; }
  void unhold() noexcept { --holders_; }
  [[nodiscard]] bool held() const noexcept { return holders_.load() > 0; }

 private:
  struct waiter {
    std::coroutine_handle<> then;
    result<std::int64_t> answer =
        tl::unexpected(net::unsent({errc::unavailable, "etcd: no lease in time"}));
    bool over = false;    // guarded by the keeper's mutex
    bool grants = false;  // its patience limits the request for the lease
  };
  struct waiting;
  friend struct waiting;

  // False: there is a lease already, and `who` has the answer.
  bool wait(std::shared_ptr<waiter> who, net::patience until);
  static flow grant(std::shared_ptr<lease_keeper> self, net::patience until);
  void finish(const result<std::int64_t>& outcome);
  void take_keepalive(std::int64_t id, const result<reply>& keepalive, const replies& others,
                      lease_note& found);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<channel> way_;
  const duration wanted_;
  const std::weak_ptr<lease_user> user_;
  std::atomic<int> holders_{0};

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  std::int64_t id_ = 0;
  duration time_{0};
  lease_proof proof_;
  bool granting_ = false;
  std::vector<std::shared_ptr<waiter>> waiters_;
};

}  // namespace holdfast::etcd
