// The store that a URL asks for, for those who know the engine.
#pragma once

#include "net/backoff.hpp"
#include "stores/sql/lease_store.hpp"
#include "stores/sql/options.hpp"
#include "stores/sql/row_attempt.hpp"
#include "stores/sql/row_store.hpp"
#include "stores/sql/session_store.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <utility>

namespace holdfast::sql {

template <class Engine>
result<std::shared_ptr<spi::store>> open_store(result<typename Engine::server_options> options,
                                               std::shared_ptr<spi::reactor> reactor,
                                               const net::backoff_limits& pauses) {
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  switch (options->strategy) {
    case strategy::lease:
      return lease_store<Engine>::make(std::move(reactor), *std::move(options));
    case strategy::session:
      return session_store<Engine>::make(std::move(reactor), *std::move(options));
    case strategy::row:
      break;
  }
  return row_store<Engine>::make(std::move(reactor), *std::move(options));
}

}  // namespace holdfast::sql
