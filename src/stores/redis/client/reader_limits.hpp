// How large a reply may be.
#pragma once

#include <cstddef>

namespace holdfast::redis {

struct reader_limits {
  std::size_t elements = 1'000'000;                   // in one reply, all arrays together
  std::size_t bytes = std::size_t{64} * 1024 * 1024;  // of one reply
  std::size_t line = std::size_t{64} * 1024;          // of a status, an error, a length
  std::size_t depth = 7;                              // of arrays in arrays
};

}  // namespace holdfast::redis
