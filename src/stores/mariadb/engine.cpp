#include "stores/mariadb/engine.hpp"

#include "stores/sql/make_bound.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::mariadb {

std::shared_ptr<connection> engine::make_control_connection(const net::network& net,
                                                            const options_ptr& options,
                                                            const std::string& process) {
  auto made = connection::make(net, options,
                               {.lock = notification_listener::parking_lock(process),
                                .carries = {},
                                .fast_paths = options->strategy == sql::strategy::lease});
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

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) {
  std::string packed;
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    std::string key = sql::key_of(each->resource);
    pack(packed, key);
    ids.emplace_back(sql::bytes_of(each->id));
    packed += ids.back();
    if (keys.empty() || keys.back() != key) keys.push_back(std::move(key));
  }
  arguments with;
  with.bytes(packed).number(static_cast<std::int64_t>(claims.size()));
  with.numbers(keys).numbers(ids).bytes(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(const sql::rows& said,
                                                      const std::vector<spi::claim_ptr>& claims) {
  std::map<std::string, std::string> lines;
  for (const std::string& row : said) {
    const std::size_t space = std::min(row.find(' '), row.size());
    lines[row.substr(0, space)] = row.substr(std::min(space + 1, row.size()));
  }
  sql::rows sorted;
  for (const spi::claim_ptr& each : claims) {
    sorted.push_back(lines[sql::to_hex(sql::bytes_of(each->id))]);
  }
  return sql::to_renewals(sorted, claims.size());
}

}  // namespace holdfast::mariadb
