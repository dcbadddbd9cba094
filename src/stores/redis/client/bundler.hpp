// Calls of scripts that go out together are one call where a script does the common cases of several: the server then
// begins a script, asks for the time and reads once for all of them. What it turns away is asked again, alone.
#pragma once

#include "stores/redis/client/pending.hpp"
#include "stores/redis/client/reply.hpp"

#include <cstddef>
#include <deque>
#include <vector>

namespace holdfast::redis {

// Not thread-safe.
class bundler {
 public:
  // The server does nothing else meanwhile: a tenth of a millisecond.
  static constexpr std::size_t at_most = 32;
  // For each that was turned away so many go alone: what is contended is mostly so for a while.
  static constexpr std::size_t wary = 64;

  // The first few of them as one, or the first alone. There is one.
  [[nodiscard]] pending take(std::deque<pending>& from);

  // The answer for each member of a bundle. nil: it was turned away, and goes alone.
  [[nodiscard]] std::vector<reply> open(const pending& whole, reply answer);

 private:
  std::size_t alone_ = 0;  // so many are still to go
};

}  // namespace holdfast::redis
