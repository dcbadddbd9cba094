// A connection to a server: sql/link.hpp, connected, set up, and then answers in the order of the
// calls, and notifications.
#pragma once

#include "net/connector.hpp"
#include "stores/postgresql/libpq.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/link.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::postgresql {

// What a link is for.
struct manner {
  postgresql::duty duty = duty::lease;
  std::string channel{};  // for a notification listener: it listens to this, and takes no commands
  std::string opening{};  // a query that the set-up ends with, or nothing
};

// Thread-safe.
//
//   phase       waits for                        then
//   resolving   the hosts' addresses             connecting
//   connecting  libpq: TCP, TLS, authentication  greeting
//   greeting    who answers, session settings    checking, or installing if there is no schema
//   installing  the schema's script              checking
//   checking    the schema's format              preparing
//   preparing   the statements, or LISTEN        open
//   open        -                                over, by any failure
//
// No call to libpq can block: names are resolved before, the socket is non-blocking. What it queues
// and writes under the mutex returns at once.
class link final : public sql::link {
 public:
  // `turn`: which of the hosts to begin with.
  link(net::network net, std::shared_ptr<const server_options> options,
       std::weak_ptr<sql::link_user> whose, manner how, std::size_t turn);
  ~link() override;

  void start() override;
  // Each in its own transaction.
  bool send(const call& what) override;
  // The server's process for this link, as reported by the server.
  [[nodiscard]] std::int64_t home() override;
  [[nodiscard]] std::string place() override;

 private:
  struct located {
    std::string host;
    std::string address;  // empty: a unix socket's folder
    std::uint16_t port;
  };

  // How it begins. Those with harvest: under the mutex.
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

  // Queries and answers. Under the mutex.
  void read(harvest& into);
  void take(PGresult* answer, harvest& into);
  void flush();
  void watch(bool readable, bool writable);

  void ready(spi::readiness how) override;
  void end_driver() noexcept override;
  std::shared_ptr<link> own() { return std::static_pointer_cast<link>(shared_from_this()); }
  const std::shared_ptr<const server_options> options_;
  const manner how_;
  const std::size_t turn_;

  // All below: guarded by mutex_.
  PGconn* connection_ = nullptr;
  std::vector<located> places_;
  bool writing_ = false;          // the watch is also for writing
  std::optional<error> trouble_;  // of the phase, or of the answer being read
  bool schema_there_ = false;
  std::string home_;  // the backend
  std::string format_there_;
  std::deque<statement> in_flight_;  // calls without an answer
  sql::rows rows_;                   // of the answer being read
  bool broken_ = false;              // an answer said that the link ends after it
};

}  // namespace holdfast::postgresql
