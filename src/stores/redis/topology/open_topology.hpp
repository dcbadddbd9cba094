// From a URL of several servers to their topology.
#pragma once

#include "net/backoff.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>

namespace holdfast::redis {

// redis+sentinel://h1[:26379],h2,.../MASTER[/db] and redis+cluster://h1[:6379],h2,... Connects when
// it is first used. invalid: what is wrong with the URL.
result<std::shared_ptr<topology>> open_topology(const spi::url& url,
                                                const std::shared_ptr<spi::reactor>& reactor,
                                                const net::backoff_limits& pauses);

}  // namespace holdfast::redis
