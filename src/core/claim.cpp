#include "core/hex.hpp"

#include <holdfast/spi/claim.hpp>

#include <string_view>

namespace holdfast::spi {

namespace {

std::uint64_t half(const claim_id& id, std::size_t from) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) bits = bits << 8U | id.bytes[from + i];
  return bits;
}

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace

std::string public_id(const claim_id& id) {
  // 64 of 128 bits: anyone who reads it still has 2^64 ids to try.
  return core::hex_of(mix(half(id, 0) ^ mix(half(id, 8) + 0x9e3779b97f4a7c15ULL)));
}

std::string to_hex(const claim_id& id) {
  return core::hex_of({reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()});
}

}  // namespace holdfast::spi
