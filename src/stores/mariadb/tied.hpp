// strategy=session and strategy=row: holds that end with a connection.
#pragma once

#include "stores/mariadb/options.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>

namespace holdfast::mariadb {

// Not for strategy=lease.
std::shared_ptr<spi::store> make_bound(std::shared_ptr<spi::reactor> reactor,
                                       server_options options);

}  // namespace holdfast::mariadb
