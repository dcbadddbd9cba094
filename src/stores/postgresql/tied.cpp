// See the header.
#include "stores/postgresql/tied.hpp"

#include "stores/postgresql/doctor.hpp"
#include "stores/postgresql/engine.hpp"
#include "stores/sql/make_tied.hpp"

#include <utility>

namespace holdfast::postgresql {

std::shared_ptr<connection> engine::make_desk(const net::network& net, const options_ptr& options,
                                              const std::string&) {
  return connection::make(net, options, {.duty = duty::desk});
}

std::shared_ptr<connection> engine::make_carrier(const net::network& net,
                                                 const options_ptr& options,
                                                 const std::string& whose,
                                                 connection::events tell) {
  manner how{.duty = options->strategy == sql::strategy::session ? duty::session : duty::row};
  how.opening = "SELECT @.begin_1('" + whose + "')";
  return connection::make(net, options, std::move(how), std::move(tell));
}

std::shared_ptr<spi::store> make_tied(std::shared_ptr<spi::reactor> reactor,
                                      server_options options) {
  return sql::make_tied<engine>(std::move(reactor), std::move(options));
}

}  // namespace holdfast::postgresql
