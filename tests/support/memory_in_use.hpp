// What this process uses.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace holdfast::test {

// Bytes that are allocated now; what the allocator keeps for later does not count. Zero where a
// sanitizer replaces the allocator.
inline std::size_t memory_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

inline std::size_t threads_in_use() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

}  // namespace holdfast::test
