#include "stores/mariadb/statement.hpp"

#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/statement.hpp"

#include <algorithm>

namespace holdfast::mariadb {

namespace {

using sql::limited;

constexpr const char* examine =
#include "stores/mariadb/examine.sql.inc"
    ;

}  // namespace

void arguments::separate() {
  if (!text_.empty()) text_ += ',';
}

arguments& arguments::bytes(std::string_view value) {
  separate();
  text_ += "x'" + sql::to_hex(value) + "'";
  return *this;
}

arguments& arguments::home() {
  separate();
  text_ += home_mark;
  return *this;
}

arguments& arguments::number(std::int64_t value) {
  separate();
  text_ += std::to_string(value);
  return *this;
}

arguments& arguments::numbers(const std::vector<std::string>& values) {
  separate();
  text_ += '\'';
  for (const std::string& each : values) {
    if (text_.back() != '\'') text_ += ',';
    text_ += "0x" + sql::to_hex(each);
  }
  text_ += '\'';
  return *this;
}

void pack(std::string& into, std::string_view value) {
  into += static_cast<char>(value.size() >> 8U & 0xffU);
  into += static_cast<char>(value.size() & 0xffU);
  into += value;
}

arguments& arguments::list(const std::vector<std::string>& values) {
  std::string packed;
  for (const std::string& each : values) pack(packed, each);
  return bytes(packed);
}

std::string text_of(statement which, const arguments& with, std::string_view prefix) {
  const std::string own(prefix);
  if (which == statement::examine) return sql::with_prefix(examine, prefix);
  if (which == statement::rollback) return "ROLLBACK";
  if (which == statement::discard) {
    return "DELETE FROM " + own + "messages WHERE seq IN (" + with.text() + ")";
  }
  return "CALL " + own + sql::name_of(which) + "_2(" + with.text() + ")";
}

std::string fast_attempt(const std::string& key, const spi::claim& claim,
                         const std::string& process) {
  const bool permits = claim.mode == spi::mode::permit;
  // What the call refuses.
  if (permits && (claim.permits < 1 || claim.permits > claim.max)) return {};
  const auto block = limited(std::max(claim.fence_block, 1U));
  arguments with;
  with.number(permits ? 2 : 1).number(limited(claim.max));
  with.flag(claim.mode == spi::mode::exclusive).number(permits ? limited(claim.permits) : 0);
  with.number(block - 1).number(sql::microseconds(claim.ttl));
  with.bytes(sql::bytes_of(claim.id)).bytes(process).bytes(spi::public_id(claim.id));
  with.number(static_cast<std::int64_t>(claim.mode)).number(limited(claim.permits));
  with.flag(claim.fair).flag(claim.renewed).number(block - 1).number(block);
  with.number(sql::microseconds(claim.ttl)).number(sql::microseconds(claim.lock_delay));
  with.bytes(claim.payload).bytes(key);
  return "EXECUTE hf_attempt USING " + with.text();
}

std::string fast_leave(const std::string& key, const spi::claim& claim) {
  arguments with;
  with.bytes(key).bytes(sql::bytes_of(claim.id));
  return "EXECUTE hf_leave USING " + with.text();
}

// The first fence is the time of the grant, or a little more.
std::string fast_grant(std::uint64_t last_fence, const spi::claim& claim) {
  return "g " + std::to_string(last_fence - std::max(claim.fence_block, 1U) + 1);
}

}  // namespace holdfast::mariadb
