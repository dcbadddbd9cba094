// Calls of scripts that go out together are one call where a script does the common cases of several: the server then
// begins a script, asks for the time and reads once for all of them. What it turns away is asked again, alone.
#pragma once

#include "stores/redis/client/pending.hpp"
#include "stores/redis/client/reply.hpp"

#include <cstddef>
#include <vector>

namespace holdfast::redis {

// Not thread-safe.
class bundler {
 public:
  // The server does nothing else meanwhile: a tenth of a millisecond.
  static constexpr std::size_t at_most = 32;
  // For each that was turned away so many go alone: what is contended is mostly so for a while.
  static constexpr std::size_t wary = 64;

  // How many of them go as one, from the first on; 1: that goes alone. There is one.
  [[nodiscard]] std::size_t together(const pending_queue& from) const;
  [[nodiscard]] pending take(pending_queue& from, std::size_t count);
  // Whether it is one that a bundle may have, and turn away.
  [[nodiscard]] static bool may_join(const pending& one) noexcept;

  // The answer for each member of a bundle. nil: it was turned away, and goes alone.
  [[nodiscard]] std::vector<reply> open(const pending& whole, reply answer);

 private:
  std::size_t alone_ = 0;  // so many are still to go
};

}  // namespace holdfast::redis
