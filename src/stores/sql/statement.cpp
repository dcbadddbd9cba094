#include "stores/sql/statement.hpp"

namespace holdfast::sql {

arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process) {
  arguments with;
  with.bytes(key).bytes(bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  with.number(limited(claim.permits)).number(limited(claim.max));
  with.flag(claim.fair).flag(claim.queued).flag(claim.renewed);
  with.number(microseconds(claim.ttl)).number(microseconds(claim.lock_delay));
  with.number(limited(std::max(claim.fence_block, 1U))).bytes(claim.payload);
  return with;
}

}  // namespace holdfast::sql
