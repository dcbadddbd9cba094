// The stores whose holds end with a connection, for those who know the engine.
#pragma once

#include "stores/sql/row_attempt.hpp"
#include "stores/sql/row_store.hpp"
#include "stores/sql/session_store.hpp"
#include "stores/sql/strategy.hpp"

#include <memory>
#include <utility>

namespace holdfast::sql {

// Not for strategy=lease.
template <class Engine>
std::shared_ptr<spi::store> make_bound(std::shared_ptr<spi::reactor> reactor,
                                       typename Engine::server_options options) {
  if (options.strategy == strategy::session) {
    return session_store<Engine>::make(std::move(reactor), std::move(options));
  }
  return row_store<Engine>::make(std::move(reactor), std::move(options));
}

}  // namespace holdfast::sql
