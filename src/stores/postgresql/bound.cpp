#include "stores/postgresql/doctor.hpp"
#include "stores/postgresql/engine.hpp"
#include "stores/postgresql/tied.hpp"
#include "stores/sql/make_tied.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::postgresql {

std::shared_ptr<connection> engine::make_control_connection(const net::network& net,
                                                            const options_ptr& options,
                                                            const std::string&) {
  return connection::make(net, options, {.duty = duty::control_connection});
}

std::shared_ptr<connection> engine::make_carrier(const net::network& net,
                                                 const options_ptr& options,
                                                 const std::string& whose,
                                                 connection::events tell) {
  manner how{.duty = options->strategy == sql::strategy::session ? duty::session : duty::row};
  how.opening = "SELECT @.begin_1('" + whose + "')";
  return connection::make(net, options, std::move(how), std::move(tell));
}

result<void> engine::check_name(const spi::resource_id& resource) {
  constexpr std::string_view prefix = "advisory:";
  if (!resource.space.empty() || !resource.name.starts_with(prefix)) return {};
  const std::string text = resource.name.substr(prefix.size());
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  if (std::to_string(number) == text) return {};
  return failure(errc::invalid,
                 "postgresql, strategy=session: after advisory: comes a number of 64 bits, as in "
                 "advisory:4711; keys of two numbers are not supported");
}

std::shared_ptr<spi::store> make_bound(std::shared_ptr<spi::reactor> reactor,
                                       server_options options) {
  return sql::make_bound<engine>(std::move(reactor), std::move(options));
}

}  // namespace holdfast::postgresql
