// The store behind postgresql:// with strategy=lease. Those who wait are told by NOTIFY, and the message
// carries the grant.
#pragma once

#include "net/backoff.hpp"
#include "stores/postgresql/engine.hpp"
#include "stores/sql/lease_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <memory>

namespace holdfast::postgresql {

// Thread-safe.
class postgresql_store final : public sql::lease_store<engine> {
 public:
  static std::shared_ptr<postgresql_store> make(std::shared_ptr<spi::reactor> reactor,
                                                server_options options);

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;

 private:
  postgresql_store(std::shared_ptr<spi::reactor> reactor, server_options options);
  // The last argument of a leave that need not be remembered.
  [[nodiscard]] std::int64_t fast_path(const spi::claim& claim) const;
};

// `pauses`: between two attempts to connect.
result<std::shared_ptr<spi::store>> open_postgresql(const spi::url& url,
                                                    std::shared_ptr<spi::reactor> reactor,
                                                    const net::backoff_limits& pauses);

}  // namespace holdfast::postgresql
