#include "stores/postgresql/engine.hpp"

#include "stores/sql/answers.hpp"
#include "stores/sql/make_bound.hpp"
#include "stores/sql/names.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::postgresql {

namespace {

// The first number of the locks that order releases and new waiters, see session.sql.inc.
constexpr std::string_view own_locks = "1752132708";

// One spelling each: two names of one number would be refused as a conflict.
template <class Number>
bool spells(const std::string& text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::to_string(number) == text;
}

}  // namespace

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
  const auto comma = text.find(',');
  if (comma == std::string::npos && spells<std::int64_t>(text)) return {};
  const std::string first = text.substr(0, comma);
  if (comma != std::string::npos && spells<std::int32_t>(first) &&
      spells<std::int32_t>(text.substr(comma + 1)) && first != own_locks) {
    return {};
  }
  return failure(
      errc::invalid,
      "postgresql, strategy=session: after advisory: comes a number of 64 bits or two of 32, as "
      "in advisory:4711 and advisory:47,11; the first is not " +
          std::string(own_locks) + ", which holdfast uses itself");
}

std::shared_ptr<spi::store> make_bound(std::shared_ptr<spi::reactor> reactor,
                                       server_options options) {
  return sql::make_bound<engine>(std::move(reactor), std::move(options));
}

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) {
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    keys.push_back(sql::key_of(each->resource));
    ids.emplace_back(sql::bytes_of(each->id));
  }
  arguments with;
  with.list(keys).list(ids).text(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(const sql::rows& said,
                                                      const std::vector<spi::claim_ptr>& claims) {
  return sql::to_renewals(said, claims.size());
}

}  // namespace holdfast::postgresql
