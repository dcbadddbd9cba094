// A connection to a server: sql/link.hpp, connected, set up, and then answers in the order of the calls, and whatever is
// notified.
#pragma once

#include "net/connector.hpp"
#include "stores/postgresql/libpq.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/connection.hpp"
#include "stores/sql/link.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
class link final : public sql::link_base<link> {
 public:
  using call = postgresql::call;
  using manner = postgresql::manner;
  using server_options = postgresql::server_options;
  static constexpr std::size_t depth = std::numeric_limits<std::size_t>::max();  // pipeline mode
  static std::size_t servers(const server_options&) noexcept { return 1; }  // libpq tries them all

  // `turn`: with which of the hosts to begin.
  link(net::network net, std::shared_ptr<const server_options> options, std::weak_ptr<user> whose,
       manner how, std::size_t turn);
  ~link();

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

 private:
  friend link_base;

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

  void ready(spi::readiness how);
  struct finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };
  using driver = std::unique_ptr<PGconn, finish>;
  driver take_driver() noexcept { return driver(std::exchange(connection_, nullptr)); }

  const std::shared_ptr<const server_options> options_;
  const manner how_;
  const std::size_t turn_;

  // All below: guarded by mutex_.
  PGconn* connection_ = nullptr;
  phase phase_ = phase::resolving;
  std::vector<located> places_;
  bool writing_ = false;          // the watch is also for writing
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
