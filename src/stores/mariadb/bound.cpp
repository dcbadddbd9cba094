#include "stores/mariadb/doctor.hpp"
#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/tied.hpp"
#include "stores/sql/make_tied.hpp"

#include <utility>

namespace holdfast::mariadb {

std::shared_ptr<connection> engine::make_control_connection(const net::network& net,
                                                            const options_ptr& options,
                                                            const std::string& process) {
  auto made = connection::make(net, options,
                               {.lock = notification_listener::parking_lock(process),
                                .carries = {},
                                .short_ways = options->strategy == sql::strategy::lease});
  made->start();  // whether it is asked or not: without it the notification listener sleeps badly
  return made;
}

std::shared_ptr<connection> engine::make_carrier(const net::network& net,
                                                 const options_ptr& options,
                                                 const std::string& whose,
                                                 connection::events tell) {
  manner how{.lock = "hfn_" + whose, .carries = whose.substr(0, whose.find('/'))};
  return connection::make(net, options, std::move(how), std::move(tell));
}

std::shared_ptr<spi::store> make_bound(std::shared_ptr<spi::reactor> reactor,
                                       server_options options) {
  return sql::make_bound<engine>(std::move(reactor), std::move(options));
}

}  // namespace holdfast::mariadb
