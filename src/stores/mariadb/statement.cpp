#include "stores/mariadb/statement.hpp"

#include "core/hex.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/statement.hpp"

#include <algorithm>

namespace holdfast::mariadb {

namespace {

using sql::limited;

constexpr const char* examine =
#include "stores/mariadb/examine.sql.inc"
    ;

}  // namespace

void pack(std::string& into, std::string_view value) {
  into += static_cast<char>(value.size() >> 8U & 0xffU);
  into += static_cast<char>(value.size() & 0xffU);
  into += value;
}

std::string to_text(const arguments& with, std::int64_t home) {
  using kind = arguments::kind;
  std::string text;
  for (const arguments::one& each : with.all()) {
    if (!text.empty()) text += ',';
    std::string packed = each.value;
    std::string digits;
    switch (each.what) {
      case kind::number:
        text += each.value;
        break;
      case kind::home:
        text += std::to_string(home);
        break;
      case kind::numbers:
        for (const std::string& one : each.values) {
          digits += (digits.empty() ? "0x" : ",0x") + core::hex_of(one);
        }
        text += "'" + digits + "'";
        break;
      case kind::list:
        for (const std::string& one : each.values) pack(packed, one);
        [[fallthrough]];
      case kind::bytes:
      case kind::text:
        text += "x'" + core::hex_of(packed) + "'";
    }
  }
  return text;
}

std::string text_of(statement which, const arguments& with, std::string_view prefix,
                    std::int64_t home) {
  const std::string own(prefix);
  if (which == statement::examine) return sql::with_prefix(examine, prefix);
  if (which == statement::rollback) return "ROLLBACK";
  if (which == statement::discard) {
    return "DELETE FROM " + own + "messages WHERE seq IN (" + to_text(with) + ")";
  }
  return "CALL " + own + sql::name_of(which) + "_3(" + to_text(with, home) + ")";
}

std::string fast_attempt(const std::string& key, const spi::claim& claim,
                         const std::string& process) {
  const bool permits = claim.mode == spi::mode::permit;
  // What the procedure refuses.
  if (permits && (claim.permits < 1 || claim.permits > claim.max)) return {};
  const auto block = limited(std::max(claim.fence_block, 1U));
  arguments with;
  with.number(permits ? 2 : 1).number(limited(claim.max));
  with.flag(claim.mode == spi::mode::exclusive).number(permits ? limited(claim.permits) : 0);
  with.number(block - 1).number(sql::microseconds(claim.ttl));
  with.bytes(sql::bytes_of(claim.id)).bytes(process).bytes(spi::public_id(claim.id));
  with.number(static_cast<std::int64_t>(claim.mode)).number(limited(claim.permits));
  with.flag(claim.fair).flag(claim.renewed).number(block);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.bytes(claim.payload).bytes(key);
  return "EXECUTE hf_attempt USING " + to_text(with);
}

std::string fast_leave(const std::string& key, const spi::claim& claim) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id));
  return "EXECUTE hf_leave USING " + to_text(with);
}

// The first fence is the time of the grant, or a little more.
std::string fast_grant(std::uint64_t last_fence, const spi::claim& claim) {
  return "g " + std::to_string(last_fence - std::max(claim.fence_block, 1U) + 1);
}

}  // namespace holdfast::mariadb
