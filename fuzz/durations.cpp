// Durations, as anybody may type them.
// sources: src/cli/text.cpp
#include "cli/text.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::cli;
  const auto read = parse_duration({reinterpret_cast<const char*>(data), size});
  if (!read) return 0;
  if (*read < holdfast::duration{}) std::abort();
  // What is written can be read, and is the same.
  const auto again = parse_duration(to_text(*read));
  if (!again || *again != *read) std::abort();
  return 0;
}
