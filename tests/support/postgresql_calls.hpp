// Calls of the stored functions of strategy=lease, as text without parameters.
#pragma once

#include "core/hex.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"

#include <holdfast/spi/claim.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::test {

// As bytes.
inline std::string literal(std::string_view bytes) {
  return "'\\x" + core::hex_of(bytes) + "'::bytea";
}

// Fair, exclusive, for 30 s.
inline spi::claim claim_on(const std::string& name, std::uint8_t number) {
  spi::claim made;
  made.id.bytes[0] = number;
  made.resource = {"", name};
  made.ttl = std::chrono::seconds(30);
  made.fair = true;
  made.queued = true;
  return made;
}

inline std::string attempt_call(const spi::claim& claim, const std::string& process) {
  const auto flag = [](bool value) { return value ? ", true" : ", false"; };
  const auto number = [](auto value) { return ", " + std::to_string(value); };
  return "attempt_3(" + literal(sql::key_of(claim.resource)) + ", " +
         literal(sql::bytes_of(claim.id)) + ", '" + spi::public_id(claim.id) + "', '" + process +
         "'" + number(static_cast<int>(claim.mode)) + "::int2" + number(claim.permits) +
         number(claim.max) + flag(claim.fair) + flag(claim.queued) + flag(claim.renewed) +
         number(sql::microseconds(claim.ttl)) + number(sql::microseconds(claim.lock_delay)) +
         number(claim.fence_block) + ", " + literal(claim.payload) + ", '" +
         postgresql::encoded_claim(claim, process) + "')";
}

// Tells the other sessions that this process listens, for as long as this session lives; not this
// session itself.
inline std::string listening_call(const std::string& process) {
  return "SELECT pg_advisory_lock_shared(hashtextextended('hf_" + process + "', 0))";
}

// `remember` and `heard`: the last two arguments of leave_3.
inline std::string leave_call(const spi::claim& claim, int remember, std::int64_t heard) {
  return "leave_3(" + literal(sql::key_of(claim.resource)) + ", '" +
         core::hex_of(sql::bytes_of(claim.id)) + "', " + std::to_string(remember) + "::int2, " +
         std::to_string(heard) + ")";
}

}  // namespace holdfast::test
