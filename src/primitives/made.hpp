// What the primitives share when they are made and moved.
#pragma once

#include <holdfast/result.hpp>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace holdfast::detail {

// What `make` returns, or what its constructor threw.
template <class Make>
auto made(Make&& make) -> result<decltype(make())> {
  try {
    return std::forward<Make>(make)();
  } catch (const lock_error& thrown) {
    return tl::unexpected(thrown.cause());
  }
}

// Moving a locked lock would leave its guard with a lock that is not there any more.
inline void check_movable(bool free, const char* type) noexcept {
  if (free) return;
  std::fprintf(stderr, "holdfast: a %s was moved while it was locked\n", type);
  std::abort();
}

}  // namespace holdfast::detail
