// What this process uses, and how long its longest tests run.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

namespace holdfast::test {

// Bytes that are allocated now; what the allocator keeps for later does not count. Zero where a
// sanitizer replaces the allocator.
inline std::size_t memory_in_use() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

inline std::size_t threads_in_use() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// 100,000; HOLDFAST_CYCLES asks for more: 6400000 is 64 threads times 100,000 cycles.
inline int cycles_in_all() {
  const char* text = std::getenv("HOLDFAST_CYCLES");
  return text == nullptr ? 100'000 : std::stoi(text);
}

}  // namespace holdfast::test
