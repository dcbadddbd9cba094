// The store behind mariadb:// with strategy=lease: claims are rows, each verb is one call of a stored
// procedure, one round trip and one transaction, decided by the server's clock. Those who wait find the
// grant in a message, and are woken to read it.
#pragma once

#include "net/connector.hpp"
#include "runtime/fork_guard.hpp"
#include "stores/mariadb/connection.hpp"
#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/sql/hearing.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::mariadb {

// Thread-safe. Connects in the background, from the beginning. All calls that concern one name go over the same
// connection, so that they are executed in the order in which they were made.
//
// Shutdown: verbs are refused; calls under way are answered; nothing is heard any more.
class mariadb_store final : public spi::store, public std::enable_shared_from_this<mariadb_store> {
 public:
  static std::shared_ptr<mariadb_store> make(std::shared_ptr<spi::reactor> reactor,
                                             server_options options);
  ~mariadb_store() override;
  mariadb_store(const mariadb_store&) = delete;
  mariadb_store& operator=(const mariadb_store&) = delete;

  [[nodiscard]] const spi::caps& caps() const noexcept override { return caps_; }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;

  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  void list(const std::string& space, const std::string& prefix, const spi::op_context& context,
            spi::completion<std::vector<spi::resource_summary>> done) override;
  void revoke(const spi::resource_id& resource, spi::revocation how, const std::string& claim,
              const spi::op_context& context,
              spi::completion<std::vector<spi::holder>> done) override;
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) override;

  void change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                    const spi::op_context& context,
                    spi::completion<spi::latch_state> done) override;
  void read_latch(const spi::resource_id& resource, const spi::op_context& context,
                  spi::completion<spi::latch_state> done) override;
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change) override;

  void probe(const spi::op_context& context,
             spi::completion<std::vector<spi::check>> done) override;
  void close() noexcept override;

 private:
  mariadb_store(std::shared_ptr<spi::reactor> reactor, server_options options);

  // One call, its rows turned into an answer by `convert`.
  template <class T, class Convert>
  void call(statement which, const std::string& key, const arguments& with,
            const spi::op_context& context, spi::completion<T> done, Convert convert);
  connection& road(const std::string& key) const;
  [[nodiscard]] bool usable() const noexcept;

  // One part of a batch: the claims whose names share a connection.
  struct batch;
  void renew_part(const std::shared_ptr<batch>& whole, std::vector<std::size_t> part,
                  connection& over, const spi::op_context& context);

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const server_options> options_;
  const spi::caps caps_;
  const net::network net_;

  // Set by make(), then constant.
  std::shared_ptr<sql::hearing<engine>> hearing_;
  std::vector<std::shared_ptr<connection>> connections_;

  std::atomic<bool> closed_{false};
};

// `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses);

}  // namespace holdfast::mariadb
