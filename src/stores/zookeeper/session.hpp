// A session with the ensemble: requests of all threads go over one connection, in order; it moves
// from server to server, and outlives each connection. What lives in ZooKeeper by this session is
// as good as the proof that it lives.
#pragma once

#include "net/connector.hpp"
#include "net/patience.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/flow.hpp"
#include "stores/zookeeper/link.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/proof.hpp"
#include "stores/zookeeper/protocol.hpp"
#include "stores/zookeeper/watches.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

using stores::flow;
using stores::task;

struct reply {
  zookeeper::code code = code::ok;
  std::string body;
  std::int64_t session = 0;  // under which it was answered
  time_point sent{};
};

// Who asked. Called exactly once for each request of a batch, by its deadline, under no lock.
class asker {
 public:
  virtual ~asker() = default;
  virtual void answered(std::size_t index, result<reply> answer) = 0;
};

struct question {
  request what;
  std::shared_ptr<watcher> watch;  // with a request that sets one
  std::string watched;             // its path
};

// Told on the reactor's threads, under no lock.
class session_user {
 public:
  virtual ~session_user() = default;
  // The server says that the session has expired: whatever lived by it is gone.
  virtual void session_ended(std::int64_t id) = 0;
};

// Thread-safe. Its states: net/reconnecting_connection.hpp; it connects to one server after the other.
// When a session has expired, the next connection begins a new one. What must hold:
//  1. Requests are answered in the order in which they were sent; one that is not answered within
//     the stall limit ends the connection. What was in flight is then unavailable: unknown.
//  2. No I/O and no call to others under the mutex; queueing bytes is neither.
//  3. Every watch fires: by its event, or by a reset when the connection was made again.
class session final : public link_user, public net::reconnecting_connection<session, link> {
 public:
  static constexpr std::size_t request_limit = 200'000;  // in flight or waiting; then overloaded

  static std::shared_ptr<session> make(const net::network& net,
                                       std::shared_ptr<const server_options> options,
                                       duration wanted, std::weak_ptr<session_user> user);
  ~session() override;

  // Sends all in one go. `who` lives until every answer has come. unavailable: no answer in time, or
  // the connection broke; it may have been executed, unless it was never sent (error::unsent): no
  // connection, see patience. lost: the session `only_in` is over (0: any
  // will do). denied, cancelled, overloaded.
  void ask(std::vector<question> batch, std::int64_t only_in, const net::patience& until,
           asker& who);

  // Nobody wants to hear of it any more. The server still does its part once.
  void unwatch(opcode by, const std::string& path, const std::shared_ptr<watcher>& who);

  // While somebody lives by the session it is kept connected and proven by writes.
  void hold() noexcept;
  void unhold() noexcept;
  [[nodiscard]] bool held() const noexcept { return holders_.load() > 0; }

  // What it asked for, and what the server gave (0: never connected).
  [[nodiscard]] duration wanted() const noexcept { return wanted_; }
  [[nodiscard]] duration timeout() const;
  // The session lives at least until this, if `id` is the current one. min: no proof.
  [[nodiscard]] time_point proven_until(std::int64_t id) const;
  // Proof and a connection: what watches for this session would be told.
  [[nodiscard]] bool open(std::int64_t id) const;

  // Says goodbye to the server. Afterwards every answer has been given.
  void close() noexcept;

  void opened(link& which, const greeting& theirs) override;
  void received(link& which, const std::vector<std::string>& frames) override;
  void ended(link& which, const error& why) override;

 private:
  friend reconnecting_connection;

  struct pending {
    question what;
    asker* who = nullptr;  // null: nobody waits any more
    std::size_t index = 0;
    std::int64_t only_in = 0;
    net::patience until;
    time_point sent{};
    std::int32_t xid = 0;
    bool writes = false;
  };
  struct answered_one {
    asker* who;
    std::size_t index;
    result<reply> answer;
  };

  session(const net::network& net, std::shared_ptr<const server_options> options, duration wanted,
          std::weak_ptr<session_user> user);

  std::shared_ptr<link> make_link();
  void start_link(link& made);
  [[nodiscard]] bool needed() const noexcept { return !waiting_.empty() || held(); }
  [[nodiscard]] std::string where() const;
  void check_deadlines();
  void send(pending one, time_point now);
  void send_waiting(std::vector<answered_one>& refused, time_point now);
  void take_frame(const std::string& frame, time_point now, std::vector<answered_one>& finished,
                  std::vector<fired>& events, std::optional<error>& broken);
  void drop_link(mutex_lock& lock, const error& why, time_point now);
  void take_waiting(const error& why, std::vector<answered_one>& into);
  void flush();
  [[nodiscard]] duration stall_limit() const noexcept;
  [[nodiscard]] duration nudge_after() const noexcept;
  [[nodiscard]] duration beat_interval() const noexcept;
  void beat(std::uint64_t turn);
  void ping(time_point now);
  void schedule_beat(time_point when);
  static flow prove(std::shared_ptr<session> self, std::int64_t id, bool made, time_point deadline);
  static void tell(std::vector<answered_one>& those);

  const std::shared_ptr<const server_options> options_;
  const duration wanted_;
  const std::weak_ptr<session_user> user_;
  std::atomic<int> holders_{0};
  // Who runs completions now: what they send goes out together afterwards.
  std::atomic<std::thread::id> delivering_{};

  // All below: guarded by mutex_.
  std::int64_t id_ = 0;
  std::string password_;
  std::int64_t last_zxid_ = 0;
  duration timeout_{0};
  session_proof proof_;
  std::int32_t next_xid_ = 1;
  std::deque<pending> in_flight_;
  std::deque<pending> waiting_;
  watch_table watches_;
  time_point last_sent_{};
  std::optional<time_point> ping_sent_;
  spi::runtime::timer_id beat_timer_ = 0;
  std::uint64_t beat_turn_ = 0;    // of the timer that counts
  std::int64_t beating_node_ = 0;  // the session whose node for proofs was made
  bool beating_ = false;           // a write for the proof is on its way
};

// Asking a session from within a flow: one batch of requests in one go, all answers at once.

using replies = std::vector<result<reply>>;

// To be awaited at once. The answers come in the order of the questions.
class asking final : public asker {
 public:
  asking(std::shared_ptr<session> whom, std::vector<question> batch, net::patience until,
         std::int64_t only_in = 0)
      : whom_(std::move(whom)),
        batch_(std::move(batch)),
        until_(until),
        only_in_(only_in),
        answers_(batch_.size(), result<reply>(failure(errc::unavailable))),
        left_(batch_.size() + 1) {}

  [[nodiscard]] bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> then) {
    then_ = then;
    whom_->ask(std::move(batch_), only_in_, until_, *this);
    return left_.fetch_sub(1) != 1;  // else all is answered already: go on here
  }
  replies await_resume() { return std::move(answers_); }

  void answered(std::size_t index, result<reply> answer) override {
    answers_[index] = std::move(answer);
    if (left_.fetch_sub(1) == 1) then_.resume();
  }

 private:
  const std::shared_ptr<session> whom_;
  std::vector<question> batch_;
  const net::patience until_;
  const std::int64_t only_in_;
  replies answers_;
  std::atomic<std::size_t> left_;
  std::coroutine_handle<> then_;
};

// One question.
task<result<reply>> ask_one(std::shared_ptr<session> whom, question what, net::patience until,
                            std::int64_t only_in = 0);

// Makes a node and what is above it, as containers: the server removes them some time after they
// became empty. Succeeds where it is there already.
task<result<void>> make_containers(std::shared_ptr<session> whom, std::string path, openness acl,
                                   net::patience until);

// What a code that was not expected means to the user.
error refusal(const char* doing, const std::string& path, code what);

}  // namespace holdfast::zookeeper
