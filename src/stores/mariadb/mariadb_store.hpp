// The store behind mariadb:// with strategy=lease. Those who wait find the grant in a message, and are
// woken to read it.
#pragma once

#include "net/backoff.hpp"
#include "stores/mariadb/engine.hpp"
#include "stores/sql/lease_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>

namespace holdfast::mariadb {

// Thread-safe.
class mariadb_store final : public sql::lease_store<engine> {
 public:
  static std::shared_ptr<mariadb_store> make(std::shared_ptr<spi::reactor> reactor,
                                             server_options options);

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;

 private:
  mariadb_store(std::shared_ptr<spi::reactor> reactor, server_options options);
};

// `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses);

}  // namespace holdfast::mariadb
