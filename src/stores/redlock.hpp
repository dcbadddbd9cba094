// From a redlock:// URL to a quorum of Redis servers.
#pragma once

#include "net/backoff.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>

namespace holdfast::stores {

// redlock://[user[:password]@]HOST[:PORT],HOST,...[/DB]. Options beside those of redis://:
//   dialect=simple   plain SET NX PX keys, as other libraries have them
//   longest_ttl=60s  of any claim of any client of this quorum; the same at all of them
//   answer=500ms     how long one member is waited for, at most
//   durable=yes      members sync every write, so that a restart loses nothing
//   tls=yes          as rediss://
// invalid: what is wrong with the URL, such as a member that is listed twice.
result<std::shared_ptr<spi::store>> open_redlock(const spi::url& url,
                                                 const std::shared_ptr<spi::reactor>& runtime,
                                                 const net::backoff_limits& pauses);

}  // namespace holdfast::stores
