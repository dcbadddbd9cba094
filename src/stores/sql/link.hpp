// One life of a connection to a SQL server, whatever its driver: the socket that is
// watched, the calls to its user, and its end. Never used again after that: a late answer
// must not be taken for another's.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/statement.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::sql {

class link;

// Called on the reactor's threads (or from within start()), under no lock, never
// concurrently for one link.
class link_user {
 public:
  virtual ~link_user() = default;
  virtual void opened(link& which) = 0;
  // All answers that came with one read, in the order of the calls. `last`: the link ends after them.
  virtual void received(link& which, std::vector<result<rows>>& answers, bool last) = 0;
  virtual void notified(link& which, std::string_view payload) = 0;
  // Once, as the last call; not after close(). denied and unsupported: an
  // immediate retry is useless.
  virtual void ended(link& which, const error& why) = 0;
};

// Thread-safe. Derived classes are drivers of one kind of server; their destructors call close().
class link : public std::enable_shared_from_this<link> {
 public:
  virtual ~link() = default;
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  virtual void start() = 0;
  // Only once opened, and not more calls than it takes before it has answered. False: the link has
  // ended or cannot take it; its end will be reported, or was.
  virtual bool send(const call& what) = 0;
  // The server's number for it, once opened.
  [[nodiscard]] virtual std::int64_t home() = 0;
  // The host and port that it is connected to, once opened.
  [[nodiscard]] virtual std::string place() = 0;

  // The server has answered: what it is doing now takes time.
  [[nodiscard]] bool spoken();
  // For messages, before it is opened: what takes so long.
  [[nodiscard]] const char* progress();

  // No call to the user afterwards, unless this is called from within one. Not to be called under a
  // lock that the calls take.
  void close() noexcept { end(); }

 protected:
  // The phases of all engines; each engine says which ones it has, and what follows.
  enum class phase : std::uint8_t {
    resolving,
    connecting,
    settling,
    greeting,
    checking,
    locking,
    rechecking,
    installing,
    unlocking,
    naming,
    evicting,
    beginning,
    preparing,
    open,
    over
  };
  // The results of one event on the socket.
  struct harvest {
    std::vector<result<rows>> answers;
    std::vector<std::string> notes;  // of servers that notify on the same connection
    bool opened = false;
    std::optional<error> end;
  };

  link(net::network net, std::string where, std::weak_ptr<link_user> whose)
      : net_(std::move(net)), user_(std::move(whose)), where_(std::move(where)) {}

  // Something happened on the socket.
  virtual void ready(spi::readiness how) = 0;
  // Destroys the driver's part of the connection. The phase is over, and
  // nothing watches it any more.
  virtual void end_driver() noexcept = 0;

  // These three with the mutex held.
  void limit_set_up(duration time);
  void watch_socket(int socket, bool readable, bool writable);
  void unwatch_within() noexcept;
  [[nodiscard]] bool watched() const noexcept { return watched_; }
  // Its set-up is no longer limited. With the mutex held.
  void open_up(harvest& into);

  void deliver(harvest& what);
  void fail(const error& why) noexcept;

  const net::network net_;
  const std::weak_ptr<link_user> user_;
  const std::string where_;
  const runtime::fork_guard guard_;
  std::mutex mutex_;
  phase phase_ = phase::resolving;  // guarded by mutex_

 private:
  bool end() noexcept;

  // All below: guarded by mutex_.
  spi::reactor::watch_id watch_ = 0;
  bool watched_ = false;
  spi::runtime::timer_id timer_ = 0;  // for the set-up
};

}  // namespace holdfast::sql
