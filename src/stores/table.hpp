// The engines of this build, in one table: a URL's scheme decides.
#pragma once

#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>
#include <string>

namespace holdfast::stores {

// `retry`: its pauses are used between two attempts to connect. invalid: no such scheme, with a
// list of those that exist; unsupported: left out of this build.
result<std::shared_ptr<spi::store>> open(const spi::url& url,
                                         const std::shared_ptr<spi::reactor>& runtime,
                                         const retry_policy& retry = {});

// The functions that the Redis store loads into a server. unsupported: left out of this build.
result<std::string> redis_library();

}  // namespace holdfast::stores
