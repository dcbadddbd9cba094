// One life of a connection to a server: connected, set up, then one question after the other, then its
// end. Never used again after that: a late answer must not be taken for another's.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/mariadb/conversation.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/server_error.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/connection.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::mariadb {

// What a connection is for.
struct manner {
  std::string lock{};  // of that name, which its session holds; empty: none
  // The client whose holds are bound to it, as the server knows it; empty: none.
  std::string carries{};
  bool short_ways = false;  // it takes and gives back by prepared statements
};

// Thread-safe.
//
//   phase       waits for                          then
//   resolving   the host's addresses               connecting
//   connecting  libmariadb: TCP, TLS, login        settling
//   settling    session settings                   greeting
//   greeting    who answers                        checking
//   checking    the tables' format                 naming, or locking where no tables are
//   locking     the right to make the tables       rechecking
//   rechecking  whether somebody made them         unlocking, or installing
//   installing  one statement after the other      unlocking
//   unlocking   -                                  naming
//   naming      the lock that it holds             beginning, or evicting
//   evicting    the end of who has it              over
//   beginning   where it is to carry holds         preparing
//   preparing   where it has short ways            open
//   open        -                                  over, by any failure
class link final : public std::enable_shared_from_this<link> {
 public:
  using call = mariadb::call;
  using manner = mariadb::manner;
  using server_options = mariadb::server_options;
  using user = sql::link_user<link>;
  static constexpr std::size_t depth = 1;       // the server's protocol knows no other way
  static constexpr std::size_t try_limit = 10;  // of a call that the server rolled back
  static std::size_t servers(const server_options& all) noexcept { return all.hosts.size(); }

  // `turn`: which of the hosts.
  link(net::network net, std::shared_ptr<const server_options> options, std::weak_ptr<user> whose,
       manner how, std::size_t turn);
  ~link();
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void start();

  // Only once opened, and not before the one before has been answered. False: the link has ended or is
  // not free; its end is told, or has been.
  bool send(const call& what);

  // By which the server knows it, once opened.
  [[nodiscard]] std::int64_t home();
  // The host and port that it connects to.
  [[nodiscard]] std::string place() const;

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
    settling,
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
  // What one event on the socket amounts to.
  struct harvest {
    std::vector<result<sql::rows>> answers;  // one at most
    bool opened = false;
    std::optional<error> end;
  };

  // link_connect.cpp; those with harvest: under the mutex.
  void located(const result<net::addresses>& found);
  void limit_set_up(duration time);
  void finish_connecting(harvest& into);
  void finish_phase(harvest& into);
  void greeted(harvest& into);
  bool named();
  void enter(phase next);
  void enter_checked(harvest& into);
  void enter_named(harvest& into);
  void enter_begun(harvest& into);
  void open_up(harvest& into);
  [[nodiscard]] std::string question(phase next) const;

  // link.cpp; under the mutex.
  void proceed(harvest& into);
  void finish(harvest& into);
  void ask();
  void finish_question(harvest& into);
  void await();
  void unwatch_within() noexcept;
  [[nodiscard]] bool format_fits() const;

  void ready(spi::readiness how);
  void fail(const error& why) noexcept;
  bool end() noexcept;
  void deliver(harvest& what);

  const net::network net_;
  const std::shared_ptr<const server_options> options_;
  const std::weak_ptr<user> user_;
  const manner how_;
  const spi::endpoint host_;
  const std::string where_;
  const runtime::fork_guard guard_;

  std::mutex mutex_;
  // All below: guarded by mutex_.
  std::unique_ptr<conversation> talk_ = std::make_unique<conversation>();
  phase phase_ = phase::resolving;
  bool asking_ = false;  // open, and without an answer
  call asked_;
  std::size_t tries_ = 0;
  bool shortened_ = false;  // its short way is being tried
  spi::reactor::watch_id watch_ = 0;
  bool watched_ = false;
  bool readable_ = false;  // what the watch is for
  bool writable_ = false;
  spi::runtime::timer_id timer_ = 0;
  std::vector<std::string> script_;  // of the installation
  std::size_t installed_ = 0;
  std::string former_;  // who has our lock: a number
  std::int64_t home_ = 0;
};

using connection = sql::connection<link>;

}  // namespace holdfast::mariadb

extern template class holdfast::sql::connection<holdfast::mariadb::link>;
