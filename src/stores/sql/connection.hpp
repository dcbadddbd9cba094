// A lasting connection: it connects, and reconnects, when needed, and each call waits for that, and
// for the calls before it, as long as its own deadline allows. Calls of all threads share it.
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "net/patience.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/link.hpp"
#include "stores/sql/renewal_batch.hpp"
#include "stores/sql/statement.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

// How long a call is waited for, and which goes first if calls wait for each other.
struct terms : net::patience {
  terms(time_point by) : patience(by), useful_until(by) {}
  terms(const net::patience& how) : patience(how), useful_until(how.deadline) {}
  terms(const spi::op_context& context)
      : patience(context), useful_until(std::max(context.deadline, context.useful_until)) {}

  // For claims that already hold: ahead of all that ask.
  [[nodiscard]] static terms ahead_of_others(const spi::op_context& context) {
    terms made(context);
    made.ahead = true;
    return made;
  }

  // The server has answered it after working on it for this long.
  void worked(duration time) const noexcept {
    if (pace) pace->took(time, claims, allowed);
  }

  time_point useful_until;  // if the server has answered others since
  bool ahead = false;
  std::shared_ptr<renewal_pace> pace{};  // for renewals: learns how long they take
  std::size_t claims = 0;
  duration allowed{};
};

// How the links of a connection are made, and what they are.
struct link_source {
  // `turn`: selects the server to begin with.
  std::function<std::shared_ptr<link>(std::weak_ptr<link_user>, std::size_t turn)> make;
  std::string where;        // for messages
  std::size_t depth = 1;    // how many calls a link takes before it has answered the first
  std::size_t servers = 1;  // from how many `turn` selects; 1 if the driver selects
  net::backoff_limits backoff{};
};

// Thread-safe. Completions are called exactly once, by the call's deadline, under no lock; if the
// server is working and a later answer is useful, by the end of that time.
//
// What must hold:
//  1. in_flight_ has the calls of the current link in the order in which they were sent. A
//     call whose deadline has passed stays as a placeholder, so that its late answer is not
//     taken for another call's.
//  2. A link is given up when a call's deadline has passed and nothing at all was answered since it
//     was sent, for at least silence_limit (or what its user says).
//  3. No outside call under the mutex, except link::send, which returns at once.
class connection final : public link_user, public net::reconnecting_connection<connection, link> {
 public:
  // In flight or waiting; beyond it: overloaded.
  static constexpr std::size_t call_limit = 200'000;
  static constexpr duration silence_limit = std::chrono::seconds(1);

  // Called on the reactor's threads.
  struct events {
    std::function<void()> opened;
    std::function<void(std::string_view)> notified;
    std::function<void(const error&)> ended;
    // How long the server may be silent; else silence_limit. Called under the mutex.
    std::function<duration()> silence;
  };

  static std::shared_ptr<connection> make(net::network net, link_source links, events tell = {}) {
    return std::shared_ptr<connection>(
        new connection(std::move(net), std::move(links), std::move(tell)));
  }
  ~connection() override {
    if (!guard_.forked()) close();
  }

  // unavailable: no answer in time, or the link broke; the call may have been executed, unless it
  // was never sent (error::unsent): no link, see patience. denied, unsupported: the server refuses
  // the connection. cancelled: closed, or forked. overloaded.
  void send(call what, const terms& until, spi::completion<rows> done);
  void send(statement which, arguments with, const terms& until, spi::completion<rows> done) {
    send(call{which, std::move(with)}, until, std::move(done));
  }

  // Connects, and stays connected from now on without further calls.
  void start();
  [[nodiscard]] bool is_open() const;
  // The server's number for the open link; 0: none is open.
  [[nodiscard]] std::int64_t home() const;
  // Why it is not open, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const;

  // From now on, whenever this one is connected, the other one does not stay at another server: a
  // connection that only listens does not notice that its server is no longer the primary.
  void lead(std::weak_ptr<connection> other);

  // Ends the open link, if any: what was sent may have been executed, but nothing more will be.
  void reset() { leave({}, "given up after a call without an answer"); }

  // Afterwards every completion has been called, with unavailable. Not from within a lock that
  // completions take.
  void close() noexcept;

  void opened(link& which) override;
  void received(link& which, std::vector<result<rows>>& answers, bool last) override;
  void notified(link&, std::string_view payload) override {
    if (tell_.notified) tell_.notified(payload);
  }
  void ended(link& which, const error& why) override;

 private:
  friend class net::reconnecting_connection<connection, link>;

  struct pending {
    call what;
    spi::completion<rows> done;  // empty: answered already, for its deadline
    terms until;
    time_point since;      // when it came, or when the link was opened after that
    time_point sent{};     // or, of the first in flight, since when the server has worked on it
    bool on_link = false;  // it was sent, or waited for its turn on an open link
  };
  using calls = std::vector<pending>;

  connection(net::network net, link_source links, events tell)
      : reconnecting_connection(std::move(net), links.backoff, links.servers),
        links_(std::move(links)),
        tell_(std::move(tell)) {}

  std::shared_ptr<link> make_link() { return links_.make(weak_from_this(), turn_); }
  void start_link(link& made) { made.start(); }
  [[nodiscard]] bool needed() const noexcept { return started_ || !waiting_.empty(); }
  [[nodiscard]] const std::string& where() const noexcept { return links_.where; }
  void check_deadlines();

  void launch(mutex_lock& lock);
  void leave(const std::string& place, const char* why);
  time_point collect_late(time_point now, calls& late);
  [[nodiscard]] time_point end_of(const pending& each, time_point now) const noexcept;
  template <class When>
  void take_waiting(calls& into, When when);
  static void refuse(calls those, const error& why);

  const link_source links_;
  const events tell_;

  // Guarded by mutex_.
  bool started_ = false;
  std::deque<pending> in_flight_;
  std::deque<pending> waiting_;  // those that go ahead of others first
  time_point heard_at_{};
  std::vector<std::weak_ptr<connection>> led_;
};

}  // namespace holdfast::sql
