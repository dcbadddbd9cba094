// The options that every URL has, whatever its engine, for when that engine does not answer.
#pragma once

#include "stores/degraded/breaker_store.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>
#include <holdfast/spi/url.hpp>

#include <memory>
#include <optional>

namespace holdfast::degraded {

struct options {
  std::optional<breaker_settings> breaker;
  bool fallback = false;
};

// Takes out of the URL:
//   breaker=N           after N requests in a row without an answer, new claims are refused at once
//   breaker_pause=1s    how often the engine is then looked for
//   degrade=local       meanwhile a lock of this process is used; implies breaker=3
// invalid: what is wrong with one of them.
result<options> take_options(spi::url& url);

// `local`: the fallback, where one is wanted.
std::shared_ptr<spi::store> wrap(const options& options, std::shared_ptr<spi::store> engine,
                                 std::shared_ptr<spi::store> local,
                                 const std::shared_ptr<spi::reactor>& runtime);

}  // namespace holdfast::degraded
