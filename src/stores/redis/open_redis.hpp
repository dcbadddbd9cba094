// From a URL to a Redis store.
#pragma once

#include "net/backoff.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>

namespace holdfast::redis {

// redis://[user[:password]@]host[:6379][/db] and rediss://,
// redis+sentinel://h1[:26379],h2,.../MASTER[/db] and redis+cluster://h1[:6379],h2,... Connects when
// it is first used. invalid: what is wrong with the URL, or with a file that it refers to.
result<std::shared_ptr<spi::store>> open_redis(const spi::url& url,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses);

// The same server as a member of a quorum. The URL has one host, and no options except those
// of servers, users and TLS.
struct voting;
result<std::shared_ptr<spi::store>> open_voter(const spi::url& url, const voting& how,
                                               const std::shared_ptr<spi::reactor>& reactor,
                                               const net::backoff_limits& pauses);

}  // namespace holdfast::redis
