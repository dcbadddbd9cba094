// A connection that stays: it connects when it is needed, again and again, and each call waits for
// that as long as its own deadline allows. Calls of all threads share it, in pipeline mode, each a
// transaction of its own.
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/postgresql/link.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/terms.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::postgresql {

// Thread-safe. Completions are called exactly once, by the call's deadline, under no lock; where the
// server is at work and a later answer is of use, by the end of that use.
//
//   state       means                           changes to
//   idle        no link, nobody waits for one   connecting: a call comes; resting: too soon
//   connecting  a link is being made            open; resting or idle: failed
//   open        calls go out as they come       resting or idle: the link ended
//   resting     back-off after a failure        connecting
//   closed      for good                        -
//
// What must hold:
//  1. in_flight_ has the calls of the current link in the order in which they were sent. One whose
//     deadline has passed stays as a blank, so that its late answer is not taken for another's.
//  2. A link is given up when a call's deadline has passed and nothing at all was answered since it
//     was sent, for at least silence_limit.
//  3. No call to others under the mutex, except link::send, which returns at once.
class connection final : public link_user, public std::enable_shared_from_this<connection> {
 public:
  // In flight, or waiting for a link; then overloaded.
  static constexpr std::size_t call_limit = 200'000;
  static constexpr duration silence_limit = std::chrono::seconds(1);

  // Told on the reactor's threads.
  struct events {
    std::function<void()> opened;
    std::function<void(std::string_view)> notified;
    std::function<void(const error&)> ended;
    // How long the server may be silent; else silence_limit. Called under the mutex.
    std::function<duration()> silence;
  };

  static std::shared_ptr<connection> make(net::network net,
                                          std::shared_ptr<const server_options> options,
                                          manner how = {}, events tell = {});
  ~connection() override;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // unavailable: no answer in time, or the link broke; the call may have been executed, unless it was
  // never sent (error::unsent): no link, see patience. denied,
  // unsupported: the server does not let us in. cancelled: closed, or forked. overloaded.
  void send(statement which, arguments with, const sql::terms& until,
            spi::completion<sql::rows> done);

  // Connects, and from now on stays connected without being asked.
  void start();
  [[nodiscard]] bool is_open() const;
  // The backend of the link that is open; 0: none is.
  [[nodiscard]] int home() const;
  // Why it is not open, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const;

  // From now on, whenever this one is connected, the other one is not left at another server: who only
  // listens is not told that its server is not the primary any more.
  void lead(std::weak_ptr<connection> other);

  // Ends the link that is open, if one is: what was sent may have been carried out, and nothing more
  // comes of it.
  void reset();

  // Afterwards every completion has been called, with unavailable. Not from within a lock that
  // completions take.
  void close() noexcept;

  void opened(link& which) override;
  void received(link& which, std::vector<result<sql::rows>>& answers) override;
  void notified(link& which, std::string_view payload) override;
  void ended(link& which, const error& why) override;

 private:
  enum class state : std::uint8_t { idle, connecting, open, resting, closed };

  struct pending {
    spi::completion<sql::rows> done;  // empty: answered already, for its deadline
    sql::terms until;
    time_point sent{};     // or, of the first in line, since when the server has been at it
    bool on_link = false;  // it was sent
  };
  struct waiting {
    statement which;
    arguments with;
    pending rest;
  };
  using mutex_lock = std::unique_lock<std::mutex>;

  connection(net::network net, std::shared_ptr<const server_options> options, manner how,
             events tell);

  void send_later(mutex_lock& lock, waiting call, time_point now);
  void connect(mutex_lock& lock);
  void rest_or_idle(time_point now);
  void watch_deadline(time_point deadline);
  void check_deadlines();
  void leave(const std::string& place, const char* why);
  [[nodiscard]] time_point end_of(const pending& call, time_point now) const noexcept;
  [[nodiscard]] bool needed() const noexcept { return started_ || !waiting_.empty(); }
  void take_waiting(const error& why, std::vector<pending>& into);
  static void refuse(std::vector<pending> those, const error& why);

  const runtime::fork_guard guard_;
  const net::network net_;
  const std::shared_ptr<const server_options> options_;
  const manner how_;
  const std::string where_;
  const events tell_;

  mutable std::mutex mutex_;
  // All below: guarded by mutex_.
  state state_ = state::idle;
  bool started_ = false;
  std::shared_ptr<link> link_;
  std::size_t turn_ = 0;  // with which host to begin: the next one after each failure
  std::deque<pending> in_flight_;
  std::deque<waiting> waiting_;
  time_point alarm_at_ = time_point::max();  // not later than any deadline
  spi::runtime::timer_id alarm_ = 0;
  spi::runtime::timer_id rest_timer_ = 0;
  net::backoff backoff_;
  time_point not_before_{};  // the next attempt to connect
  time_point opened_at_{};
  time_point heard_at_{};
  std::optional<error> last_failure_;
  std::vector<std::weak_ptr<connection>> led_;
};

}  // namespace holdfast::postgresql
