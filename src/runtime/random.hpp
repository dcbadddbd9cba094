// Unpredictable numbers from the kernel, drawn in blocks: a claim id is a capability, and a system
// call per id would be felt.
#pragma once

#include "runtime/fork_guard.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace holdfast::runtime {

// Thread-safe. In a forked child nothing of the parent's block is given out: numbers are drawn one
// by one there.
class random_source {
 public:
  // Throws std::system_error if the kernel has no randomness to give.
  std::uint64_t next();

 private:
  static constexpr std::size_t block = 64;

  const fork_guard guard_;
  std::mutex mutex_;
  std::array<std::uint64_t, block> numbers_{};  // guarded by mutex_; given out from the end
  std::size_t left_ = 0;                        // guarded by mutex_
};

}  // namespace holdfast::runtime
