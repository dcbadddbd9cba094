// From a URL to a Redis store.
#pragma once

#include "net/backoff.hpp"
#include "stores/redis/client/greeting.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::redis {

// nullopt: the URL does not say.
std::optional<std::string> option(const spi::url& url, const std::string& name);

// What a URL says of servers, users and TLS, for its i-th host; `pauses`: between two attempts to
// connect. For topologies too.
result<server_options> server_options_of(const spi::url& url, std::size_t host,
                                         const net::backoff_limits& pauses);

// redis://[user[:password]@]host[:6379][/db] and rediss://, redis+sentinel:// and redis+cluster://
// (open_topology). Connects when it is first used. invalid:
// what is wrong with the URL, or with a file that it names.
result<std::shared_ptr<spi::store>> open_redis(const spi::url& url,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses);

// The same server as a member of a quorum. The URL has one host and no options but those of servers,
// users and TLS.
struct voting;
result<std::shared_ptr<spi::store>> open_voter(const spi::url& url, const voting& how,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses);

// redis+sentinel://h1[:26379],h2,.../MASTER[/db] and redis+cluster://h1[:6379],h2,... Connects when
// it is first used. invalid: what is wrong with the URL.
result<std::shared_ptr<topology>> open_topology(const spi::url& url,
                                                const std::shared_ptr<spi::reactor>& reactor,
                                                const net::backoff_limits& pauses);

}  // namespace holdfast::redis
