// A session with the ensemble: requests of all threads go over one connection, in order; it moves
// from server to server, and outlives each connection. What depends on this session in ZooKeeper is
// as valid as the proof that the session lives.
#pragma once

#include "net/connector.hpp"
#include "net/patience.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/flow.hpp"
#include "stores/queued/asking.hpp"
#include "stores/zookeeper/link.hpp"
#include "stores/zookeeper/options.hpp"
#include "stores/zookeeper/protocol.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

// The watches of a connection: who is notified when a node changes. A watch fires once.

// Called under no lock, on a reactor's thread.
using watcher = std::function<void(const watch_event&)>;

struct fired {
  std::shared_ptr<watcher> who;
  watch_event event;
};

// Not thread-safe.
class watch_table {
 public:
  // Called for the request that sets it, before that is sent: the event may overtake the answer.
  void add(opcode by, const std::string& path, std::shared_ptr<watcher> who) {
    auto& those = (by == opcode::get_children ? children_ : nodes_)[path];
    if (std::find(those.begin(), those.end(), who) == those.end()) those.push_back(std::move(who));
  }
  // The server did not set it after all.
  void drop(opcode by, const std::string& path, const std::shared_ptr<watcher>& who) {
    auto& from = by == opcode::get_children ? children_ : nodes_;
    const auto found = from.find(path);
    if (found == from.end()) return;
    std::erase(found->second, who);
    if (found->second.empty()) from.erase(found);
  }

  void take(const watch_event& event, std::vector<fired>& into) {
    using type = watch_event::type;
    if (event.what != type::children_changed) take(nodes_, event, into);
    if (event.what == type::children_changed || event.what == type::deleted) {
      take(children_, event, into);
    }
  }
  // The connection is a new one: all must look again.
  void take_all(std::vector<fired>& into) {
    for (auto* each : {&nodes_, &children_}) {
      for (auto& [path, those] : *each) {
        for (auto& who : those) {
          into.push_back({std::move(who), {watch_event::type::reset, path}});
        }
      }
      each->clear();
    }
  }

 private:
  using table = std::unordered_map<std::string, std::vector<std::shared_ptr<watcher>>>;

  static void take(table& from, const watch_event& event, std::vector<fired>& into) {
    const auto found = from.find(event.path);
    if (found == from.end()) return;
    for (auto& who : found->second) into.push_back({std::move(who), event});
    from.erase(found);
  }

  table nodes_;     // of data and existence
  table children_;  // of lists
};

// When was the session certainly alive at the leader? The validity of holds is counted from there.
//
// A ping or a read may be answered by a follower that has lost its leader. What proves the session
// is an answered quorum write, but only for what happened before it: the leader learns from a
// follower's ping, every half tick, from which clients the follower has heard. An answered write
// that was sent a good half tick after the answer to another request shows that the leader has
// learned of that one: the session's time counts from when that request was sent. A new session
// proves itself, as it is created by a write. A session that was only resumed does not: a leader
// whose followers have left it for another one still knows it, and says so.

// Not thread-safe.
class session_proof {
 public:
  // Requests that wait for a later write: one per eighth of the spacing, so more only where many
  // were answered at once after a long time.
  static constexpr std::size_t candidate_limit = 64;

  // A new session. `spacing`: longer than the half tick within which a leader hears
  // of a follower's clients.
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
    const auto ripe = [&](const candidate& one) { return one.answered + spacing_ <= sent; };
    // Of those that any write proves from now on, the last is enough.
    while (candidates_.size() > 1 && ripe(candidates_[1])) candidates_.pop_front();
    if (write && !candidates_.empty() && ripe(candidates_.front())) {
      date_ = std::max(date_, candidates_.front().sent);
      candidates_.pop_front();
    }
    if (candidates_.size() >= candidate_limit) return;
    if (candidates_.empty() || candidates_.back().sent + spacing_ / 8 <= sent) {
      candidates_.push_back({sent, now});
    }
  }

  // The session lives at least until this plus its timeout. min: no proof.
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

using stores::flow;
using stores::task;
using stores::value_of;

struct reply {
  zookeeper::code code = code::ok;
  std::string body;
  std::int64_t session = 0;  // under which it was answered
  time_point sent{};
};

using asker = stores::asker<reply>;
using answered_one = stores::answered_one<reply>;
using replies = std::vector<result<reply>>;

struct question {
  request what;
  std::shared_ptr<watcher> watch{};  // with a request that sets one
  std::string watched{};             // its path
};

// Notified on the reactor's threads, under no lock.
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
//  2. No I/O and no outside calls under the mutex; queueing bytes is neither.
//  3. Every watch fires: by its event, or by a reset after reconnecting.
class session final : public link_user, public net::reconnecting_connection<session, link> {
 public:
  static constexpr std::size_t request_limit = 200'000;  // in flight or waiting; then overloaded

  static std::shared_ptr<session> make(const net::network& net,
                                       std::shared_ptr<const server_options> options,
                                       duration wanted, std::weak_ptr<session_user> user);
  ~session() override;

  // Sends all together. `who` must live until every answer has come. unavailable: no answer in
  // time, or the connection broke; it may have been executed, unless it was never sent
  // (error::unsent): no connection, see patience. lost: the session `only_in` is over (0: any will
  // do). denied, cancelled, overloaded.
  void ask(std::vector<question> batch, const net::patience& until, asker& who,
           std::int64_t only_in);

  // Nobody is interested any more. The server may still send the event once.
  void unwatch(opcode by, const std::string& path, const std::shared_ptr<watcher>& who);

  // While a claim lives by the session, it is kept connected and proven by writes.
  void hold() noexcept;
  void unhold() noexcept;
  [[nodiscard]] bool held() const noexcept { return holders_.load() > 0; }

  // The requested timeout, and the one that the server granted (0: never connected).
  [[nodiscard]] duration wanted() const noexcept { return wanted_; }
  [[nodiscard]] duration timeout() const;
  // The session lives at least until this, if `id` is the current one. min: no proof.
  [[nodiscard]] time_point proven_until(std::int64_t id) const;
  // It is proven and connected: watches of this session would fire.
  [[nodiscard]] bool open(std::int64_t id) const;

  // Afterwards every answer has been given. At the server the session ends now, or when its time has
  // passed.
  enum class ends : std::uint8_t { now, in_time };
  void close(ends when = ends::now) noexcept;

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
  // The thread that is running completions: what they send goes out together afterwards.
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
  std::deque<time_point> pings_;  // not answered: when each was sent
  spi::runtime::timer_id beat_timer_ = 0;
  std::uint64_t beat_turn_ = 0;    // of the timer that counts
  std::int64_t beating_node_ = 0;  // the session whose node for proofs was made
  bool beating_ = false;           // a write for the proof is on its way
};

using asking = stores::asking<session, question, reply>;

// One question.
task<result<reply>> ask_one(std::shared_ptr<session> whom, question what, net::patience until,
                            std::int64_t only_in = 0);

// All or nothing. The outcome says what failed; connection_loss: the answer is malformed.
task<result<multi_outcome>> ask_multi(std::shared_ptr<session> whom, std::vector<request> parts,
                                      net::patience until, std::int64_t only_in = 0);

// Creates a node and its parents as containers: the server removes them some time after they became
// empty. Succeeds if it exists already.
task<result<void>> make_containers(std::shared_ptr<session> whom, std::string path, openness acl,
                                   net::patience until);

// What an unexpected code means to the user.
error refusal(const char* doing, const std::string& path, code what);

// The children in the answer to a list; a missing node has none.
result<std::vector<std::string>> children_in(const result<reply>& answer, const std::string& path);

}  // namespace holdfast::zookeeper
