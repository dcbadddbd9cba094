// Names of locks, and children of a ZooKeeper node, which anybody may have made.
// sources: src/core/names.cpp src/core/result.cpp src/core/claim.cpp src/stores/zookeeper/names.cpp
#include "core/names.hpp"

#include "stores/zookeeper/names.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (!core::check_name(core::clean_payload(text)) && !text.empty()) std::abort();
  static_cast<void>(zookeeper::decoded(text));
  static_cast<void>(zookeeper::parse_node(text));
  if (!core::check_name(text)) return 0;
  // Injective: what is written can be read back.
  if (zookeeper::decoded(zookeeper::encoded(text)) != std::string(text)) std::abort();
  return 0;
}
