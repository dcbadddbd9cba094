// A connection that stays: it connects when it is needed, again and again, and each call waits for
// that, and for the calls before it, as long as its own deadline allows. Calls of all threads share
// it, one after the other: the server's protocol knows no other way.
#pragma once

#include "net/backoff.hpp"
#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/mariadb/link.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/statement.hpp"
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
#include <vector>

namespace holdfast::mariadb {

// Thread-safe. Completions are called exactly once, by the call's deadline, under no lock; where the
// server is at work and a later answer is of use, by the end of that use.
//
//   state       means                           changes to
//   idle        no link, nobody waits for one   connecting: a call comes; resting: too soon
//   connecting  a link is being made            open; resting or idle: failed
//   open        calls go out one by one         resting or idle: the link ended
//   resting     back-off after a failure        connecting
//   closed      for good                        -
//
// What must hold:
//  1. flight_ is the call that the link has been given and not answered. When its deadline has passed
//     it stays as a blank, so that its late answer is not taken for another's.
//  2. A link is given up when the deadline of its call has passed, and silence_limit (or what its user
//     says) since it was sent.
//  3. No call to others under the mutex, except link::send, which returns at once.
//  4. A call that the server rolled back is sent again, try_limit times at most. So is, whole, one whose
//     short way changed nothing.
class connection final : public link_user, public std::enable_shared_from_this<connection> {
 public:
  // Waiting for a link or for their turn; then overloaded.
  static constexpr std::size_t call_limit = 200'000;
  static constexpr int try_limit = 10;
  static constexpr duration silence_limit = std::chrono::seconds(1);

  // Told on the reactor's threads.
  struct events {
    std::function<void()> opened;
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
  void send(statement which, const arguments& with, const sql::terms& until,
            spi::completion<sql::rows> done);
  // The same, after `shorter` has been tried in its place: if that changes a row it is the answer, as a
  // row with its number alone; if it changes none the whole call is made, before any other.
  void send(std::string shorter, statement which, const arguments& with, const sql::terms& until,
            spi::completion<sql::rows> done);

  // Connects, and from now on stays connected without being asked.
  void start();
  [[nodiscard]] bool is_open() const;
  // By which the server knows the link that is open; 0: none is.
  [[nodiscard]] std::int64_t home() const;
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
  void received(link& which, answer& given) override;
  void ended(link& which, const error& why) override;

 private:
  enum class state : std::uint8_t { idle, connecting, open, resting, closed };

  struct call {
    statement which;
    std::string text;
    spi::completion<sql::rows> done;  // empty: answered already, for its deadline
    sql::terms until;
    time_point sent{};
    int tries = 0;
    bool had_link = false;  // waited for its turn on an open link until its deadline
    std::string shorter{};  // to be tried first
    time_point came{};
  };
  using mutex_lock = std::unique_lock<std::mutex>;
  using calls = std::vector<call>;

  connection(net::network net, std::shared_ptr<const server_options> options, manner how,
             events tell);

  [[nodiscard]] std::optional<error> refusal(const call& next, time_point now) const;
  void connect(mutex_lock& lock);
  void launch();
  void rest_or_idle(time_point now);
  void watch_deadline(time_point deadline);
  void check_deadlines();
  void leave(const std::string& place, const char* why);
  time_point collect_late(time_point now, calls& late);
  [[nodiscard]] time_point end_of(const call& each, time_point now) const noexcept;
  [[nodiscard]] bool needed() const noexcept { return started_ || !waiting_.empty(); }
  void take_waiting(const error& why, calls& into);
  static void refuse(calls those, const error& why);

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
  std::size_t turn_ = 0;      // which host: the next one after each failure
  std::size_t failures_ = 0;  // to connect, in a row
  std::optional<call> flight_;
  std::deque<call> waiting_;                 // those ahead of others first
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

}  // namespace holdfast::mariadb
