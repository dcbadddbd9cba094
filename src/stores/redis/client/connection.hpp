// The command connection of a node: commands of all threads and coroutines go over one link, and
// share its writes. It connects, and reconnects, when needed, and each command waits for that as
// long as its own deadline allows.
#pragma once

#include "net/connector.hpp"
#include "net/reconnecting_connection.hpp"
#include "stores/redis/client/batch.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/greeting.hpp"
#include "stores/redis/client/link.hpp"
#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::redis {

// What the server of one connection is assumed to know: scripts and libraries, by their
// addresses. Not thread-safe.
class known_sources {
 public:
  // Whether a call must bring its source, which counts as known from now on. A library is assumed
  // to be there until a call finds it missing: calls that are in flight then find the same. A
  // script is sent in full the first time, or else a call of another script, which the server
  // knows, would overtake it.
  bool brings(const void* source, bool is_library) {
    if (!is_library) return scripts_.insert(source).second;
    return !missing_libraries_.empty() && missing_libraries_.erase(source) > 0;
  }

  // The server said that it does not know it.
  void forget(const void* source, bool is_library) {
    if (is_library) {
      missing_libraries_.insert(source);
    } else {
      scripts_.erase(source);
    }
  }

  // It may be another server.
  void clear() noexcept {
    missing_libraries_.clear();
    scripts_.clear();
  }

 private:
  std::set<const void*> missing_libraries_;
  std::set<const void*> scripts_;
};

// Thread-safe. Completions are called exactly once, by the command's deadline, under no lock.
// Its states: net/reconnecting_connection.hpp.
//
// What must hold:
//  1. A command that is not answered in time ends the link: later answers would be assigned to the
//     wrong commands. Everything in flight is then unavailable, its outcome unknown.
//  2. in_flight_ has the commands of the current link in the order in which their bytes were
//     queued.
//  3. No I/O and no outside calls under the mutex; queueing bytes is neither.
//  4. held_ contains commands only while an answer is pending, and is sent when one arrives.
//  5. Commands are executed in the order in which they were sent, unless one was answered with
//     unavailable. So if the server does not know a script or a function, nothing is sent until
//     everything in flight is answered; then what was not executed is sent again, in its order and
//     after the library, before what came meanwhile. Two exceptions: a call that must not be
//     repeated (no reloads), and the members of a batch that the server refused for lack of
//     memory: these are sent alone.
class connection final : public link_user, public net::reconnecting_connection<connection, link> {
 public:
  // In flight, or waiting for a link; then overloaded.
  static constexpr std::size_t command_limit = 200'000;

  // Called on the reactor's threads. For topologies: which server answers now, or that none does.
  struct events {
    std::function<void(const server_info&)> opened;
    std::function<void(const error&)> ended;
  };

  static std::shared_ptr<connection> make(net::network net, server_options options,
                                          events tell = {});
  ~connection() override;

  // Writes on the calling thread if the link is open, or soon (batch.hpp). Error replies of the
  // server are replies. unavailable: no answer in time, or the link broke; the command may have
  // been executed, unless it was never sent (error::unsent): no link, see patience. denied,
  // unsupported: the server refuses the connection. cancelled: closed, or forked. overloaded.
  // asking: after ASKING. A command that runs a script and has no reloads left is answered with
  // is_unknown_script() if the server does not know it; from then on the script is loaded first.
  void send(pending_ptr call);
  void send(command what, const net::patience& until, spi::completion<reply> done,
            bool asking = false) {
    send(make_pending(std::move(what), until, std::move(done), asking));
  }

  // Afterwards every completion has been called, with unavailable. Not from within a lock that
  // completions take.
  void close() noexcept;

  // The server as last greeted, if ever.
  [[nodiscard]] std::optional<server_info> server() const;
  [[nodiscard]] const server_options& options() const noexcept { return *options_; }

  void opened(link& which, const server_info& server) override;
  void received(link& which, std::vector<reply>& replies) override;
  void ended(link& which, const error& why) override;

 private:
  friend reconnecting_connection;

  // After a quiet time, a link that ends without an answer is assumed to have ended
  // before: what was sent on it is sent again on a new one. Everything that the store
  // sends may be executed twice, and late, unless it is a script that is sent once.
  static constexpr duration quiet = std::chrono::seconds(1);

  struct answered {
    pending_ptr call;
    reply answer;
  };

  connection(net::network net, server_options options, events tell);

  void send_later(mutex_lock& lock, pending_ptr call, time_point now);
  void queue(pending_ptr call);
  [[nodiscard]] const void* source_of(const script& runs) const noexcept;
  void queue_ahead(const command& what, pending::ahead kind, const net::patience& until);
  void queue_script(const pending& call);
  void queue_unknown();
  void queue_held();
  bool keep_unknown();
  void match(reply& answer, std::pmr::vector<answered>& into);
  void open_batch(pending& whole, reply& answer, std::pmr::vector<answered>& into);
  void check_deadlines();
  void drop_link(mutex_lock& lock, const error& why, time_point now);
  void take_waiting(const error& why, pending_queue& into);
  static void refuse(const pending_queue& those, const error& why);
  std::shared_ptr<link> make_link() {
    return std::make_shared<link>(net_, options_, weak_from_this());
  }
  static void start_link(link& made) { made.start(); }
  [[nodiscard]] bool needed() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] std::string where() const { return "redis " + options_->where.text(); }

  const std::shared_ptr<const server_options> options_;
  const events tell_;
  // The thread that is running completions: the commands that they send go out together afterwards.
  // Each thread only compares it with itself.
  std::atomic<std::thread::id> delivering_{};

  // All below: guarded by mutex_.
  pending_queue in_flight_;
  pending_queue unknown_;  // not executed because the server does not know the script: sent again
  pending_queue held_;     // only while something is in flight
  pacing pacing_;
  pending_queue waiting_;   // for a link
  bool functions_ = false;  // the server supports them, and they are enabled
  known_sources known_;
  std::string load_failure_;  // the server's refusal of the last library, or empty
  time_point heard_at_{};     // the link's last sign of life
  std::optional<server_info> server_;
};

}  // namespace holdfast::redis
