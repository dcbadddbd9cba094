// The arguments of an attempt, which are the same for all SQL engines.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"

#include <holdfast/spi/claim.hpp>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <string>

namespace holdfast::sql {

// As large as the column is.
inline std::int64_t limited(std::uint32_t number) {
  return std::min<std::uint32_t>(number, INT_MAX);
}

// `process`: by which the others know the client.
template <class Arguments>
Arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process) {
  Arguments with;
  with.bytes(key).bytes(bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  with.number(limited(claim.permits)).number(limited(claim.max));
  with.flag(claim.fair).flag(claim.queued).flag(claim.renewed);
  with.number(microseconds(claim.ttl)).number(microseconds(claim.lock_delay));
  with.number(limited(std::max(claim.fence_block, 1U))).bytes(claim.payload);
  return with;
}

}  // namespace holdfast::sql
