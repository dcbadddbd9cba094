// A connection to a server: sql/link.hpp, connected, set up, and then one query after the other.
#pragma once

#include "net/connector.hpp"
#include "stores/mariadb/conversation.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/server_error.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/link.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::mariadb {

// What a connection is for.
struct manner {
  std::string lock{};  // of that name, which its session holds; empty: none
  // The client whose holds are bound to it, by its name at the server; empty: none.
  std::string carries{};
  bool fast_paths = false;  // it takes and releases by prepared statements
};

// Thread-safe.
//
//   phase       waits for                          then
//   resolving   the host's addresses               connecting
//   connecting  libmariadb: TCP, TLS, login        settling
//   settling    session settings                   greeting
//   greeting    who answers                        checking
//   checking    the tables' format                 naming, or locking if there are no tables
//   locking     the right to create the tables     rechecking
//   rechecking  whether somebody created them      unlocking, or installing
//   installing  one statement after the other      unlocking
//   unlocking   -                                  naming
//   naming      the lock that it holds             beginning, or evicting
//   evicting    the end of its holder              over
//   beginning   if it will carry holds             preparing
//   preparing   if it has fast paths               open
//   open        -                                  over, by any failure
class link final : public sql::link {
 public:
  // `turn`: which of the hosts.
  link(net::network net, std::shared_ptr<const server_options> options,
       std::weak_ptr<sql::link_user> whose, manner how, std::size_t turn);
  ~link() override;

  void start() override;

  // Only once the previous call has been answered: the server's protocol has no pipelining.
  bool send(const call& what) override;
  [[nodiscard]] std::int64_t home() override;
  [[nodiscard]] std::string place() override;

 private:
  static constexpr std::size_t try_limit = 10;  // tries of a call that the server rolled back

  // How it begins. Those with harvest: under the mutex.
  void located(const result<net::addresses>& found);
  void connected();
  void finish_connecting(harvest& into);
  void finish_phase(harvest& into);
  void greeted(harvest& into);
  bool named();
  void enter(phase next);
  void enter_checked(harvest& into);
  void enter_named(harvest& into);
  void enter_begun(harvest& into);
  [[nodiscard]] std::string question(phase next) const;

  // Queries and answers. Under the mutex.
  void proceed(harvest& into);
  void finish(harvest& into);
  void ask();
  void finish_question(harvest& into);
  void await();
  [[nodiscard]] bool format_fits() const;

  void ready(spi::readiness how) override;
  void end_driver() noexcept override { talk_.reset(); }
  std::shared_ptr<link> own() { return std::static_pointer_cast<link>(shared_from_this()); }

  const std::shared_ptr<const server_options> options_;
  const manner how_;
  const spi::endpoint host_;

  // All below: guarded by mutex_.
  std::unique_ptr<conversation> talk_ = std::make_unique<conversation>();
  bool asking_ = false;  // open, and without an answer
  call asked_;
  std::size_t tries_ = 0;
  bool on_fast_path_ = false;  // its fast path is being tried
  bool readable_ = false;      // what the watch is for
  bool writable_ = false;
  std::vector<std::string> script_;  // of the installation
  std::size_t installed_ = 0;
  std::string former_;  // who has our lock: a number
  std::int64_t home_ = 0;
};

}  // namespace holdfast::mariadb
