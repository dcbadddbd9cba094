// See the header.
#include "stores/postgresql/calls.hpp"

#include "stores/postgresql/engine.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace holdfast::postgresql {

namespace {

std::int64_t limited(std::uint32_t number) { return std::min<std::uint32_t>(number, INT_MAX); }

}  // namespace

arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id)).text(spi::public_id(claim.id)).text(process);
  with.number(static_cast<std::int64_t>(claim.mode));
  with.number(limited(claim.permits)).number(limited(claim.max));
  with.flag(claim.fair).flag(claim.queued).flag(claim.renewed);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.number(limited(std::max(claim.fence_block, 1U))).bytes(claim.payload);
  return with;
}

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) {
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    keys.push_back(sql::key_of(each->resource));
    ids.emplace_back(sql::bytes_of(each->id));
  }
  arguments with;
  with.list(keys).list(ids).text(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(const sql::rows& said,
                                                      const std::vector<spi::claim_ptr>& claims) {
  return sql::to_renewals(said, claims.size());
}

}  // namespace holdfast::postgresql
