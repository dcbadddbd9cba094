// One life of a connection to a server: connected, set up, then answers in the order of the calls
// and whatever is notified, then its end. Never used again after that: a late answer must not be
// taken for another's.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/postgresql/libpq.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/connection.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::postgresql {

// What a link is for.
struct manner {
  postgresql::duty duty = duty::lease;
  std::string channel{};  // a notification listener's: it listens to it, and takes no commands
  std::string opening{};  // a query that the set-up ends with, or nothing
};

// Thread-safe.
//
//   phase       waits for                        then
//   resolving   the hosts' addresses             connecting
//   connecting  libpq: TCP, TLS, authentication  greeting
//   greeting    who answers, session settings    checking, or installing where no schema is
//   installing  the schema's script              checking
//   checking    the schema's format              preparing
//   preparing   the statements, or LISTEN        open
//   open        -                                over, by any failure
//
// libpq is asked nothing that could block: names are resolved before, the socket never waits. What
// it queues and writes under the mutex returns at once.
class link final : public std::enable_shared_from_this<link> {
 public:
  using call = postgresql::call;
  using manner = postgresql::manner;
  using server_options = postgresql::server_options;
  using user = sql::link_user<link>;
  static constexpr std::size_t depth = std::numeric_limits<std::size_t>::max();  // pipeline mode
  static std::size_t servers(const server_options&) noexcept { return 1; }  // libpq tries them all

  // `turn`: with which of the hosts to begin.
  link(net::network net, std::shared_ptr<const server_options> options, std::weak_ptr<user> whose,
       manner how, std::size_t turn);
  ~link();
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void start();

  // Only once opened, in a transaction of its own. False: the link has ended or cannot take it; its
  // end is told, or has been.
  bool send(const call& what);

  // The server's process for this link, as the server itself says; only once opened.
  [[nodiscard]] std::int64_t home();
  // The host and port that it is connected to; only once opened.
  [[nodiscard]] std::string place();

  // For messages, before it is opened: what takes so long.
  [[nodiscard]] const char* progress();
  // The server has answered: what it does now takes its time.
  [[nodiscard]] bool spoken();

  // No call to the user afterwards, unless this is called from within one. Not under a lock that the
  // calls take.
  void close() noexcept;

 private:
  enum class phase : std::uint8_t {
    resolving,
    connecting,
    greeting,
    installing,
    checking,
    preparing,
    open,
    over
  };
  // What one event on the socket amounts to.
  struct harvest {
    std::vector<result<sql::rows>> answers;
    std::vector<std::string> notes;
    bool opened = false;
    std::optional<error> end;
  };
  struct located {
    std::string host;
    std::string address;  // empty: a unix socket's folder
    std::uint16_t port;
  };

  // link_connect.cpp; those with harvest: under the mutex.
  void resolve(std::size_t index);
  void located_all();
  std::optional<error> begin();
  void poll(harvest& into);
  void set_up(harvest& into);
  void finish_phase(harvest& into);
  void greeted(const PGresult* answer, harvest& into);
  void ask(phase next, const std::string& query, harvest& into);
  void prepare(harvest& into);
  [[nodiscard]] std::string greeting_query() const;

  // link.cpp; under the mutex.
  void read(harvest& into);
  void take(PGresult* answer, harvest& into);
  void flush();
  void watch(bool readable, bool writable);
  void unwatch_within() noexcept;

  void ready();
  void fail(const error& why) noexcept;
  bool end() noexcept;
  void deliver(harvest& what);

  const net::network net_;
  const std::shared_ptr<const server_options> options_;
  const std::weak_ptr<user> user_;
  const manner how_;
  const std::size_t turn_;
  const std::string where_;
  const runtime::fork_guard guard_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  PGconn* connection_ = nullptr;
  phase phase_ = phase::resolving;
  std::vector<located> places_;
  spi::reactor::watch_id watch_ = 0;
  bool watched_ = false;
  bool writing_ = false;  // the watch is also for writing
  spi::runtime::timer_id timer_ = 0;
  std::optional<error> trouble_;  // of the phase, or of the answer being read
  bool schema_there_ = false;
  std::string home_;  // the backend
  std::string format_there_;
  std::deque<statement> in_flight_;  // calls without an answer
  sql::rows rows_;                   // of the answer being read
  bool broken_ = false;              // an answer said so: the link ends after it
};

using connection = sql::connection<link>;

}  // namespace holdfast::postgresql

extern template class holdfast::sql::connection<holdfast::postgresql::link>;
