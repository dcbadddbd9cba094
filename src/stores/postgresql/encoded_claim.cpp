#include "stores/postgresql/encoded_claim.hpp"

#include "stores/sql/answers.hpp"
#include "stores/sql/attempt_arguments.hpp"
#include "stores/sql/names.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace holdfast::postgresql {

std::string encoded_claim(const spi::claim& claim, const std::string& process) {
  std::string words = sql::to_hex(sql::bytes_of(claim.id));
  words.reserve(words.size() + process.size() + 2 * claim.payload.size() + 128);
  const auto add = [&words](std::string_view word) { (words += ' ') += word; };
  const auto count = [&add](std::int64_t number) { add(std::to_string(number)); };
  add(process);
  add(spi::public_id(claim.id));
  count(static_cast<std::int64_t>(claim.mode));
  count(sql::limited(claim.permits));
  count(sql::limited(claim.max));
  count(claim.fair ? 1 : 0);
  count(claim.renewed ? 1 : 0);
  count(sql::limited(std::max(claim.fence_block, 1U)));
  count(sql::microseconds(claim.ttl));
  count(sql::microseconds(claim.lock_delay));
  add(sql::to_hex(claim.payload));
  return words;
}

}  // namespace holdfast::postgresql
