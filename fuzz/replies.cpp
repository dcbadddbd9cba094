// What a server, or an impostor, sends: however the bytes are split, the same replies.
// sources: src/stores/redis/client/reply.cpp src/core/result.cpp
// libraries: -lhiredis
#include "stores/redis/client/reply.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::redis;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<reply> whole;
  reply_reader at_once;
  const bool fine = at_once.feed(text, whole).has_value();
  std::vector<reply> parts;
  reply_reader in_pieces;
  bool fine_too = true;
  for (std::size_t i = 0; i < text.size() && fine_too; ++i) {
    fine_too = in_pieces.feed(text.substr(i, 1), parts).has_value();
  }
  if (fine != fine_too || whole.size() != parts.size()) std::abort();
  return 0;
}
