#include "stores/postgresql/statement.hpp"

#include "core/hex.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/statement.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace holdfast::postgresql {

namespace {

constexpr unsigned of_lease = bit(duty::lease);
constexpr unsigned of_session = bit(duty::session);
constexpr unsigned of_row = bit(duty::row);
constexpr unsigned of_control = bit(duty::control_connection);

struct entry {
  unsigned duties;
  const char* text;
};

// In the order of the enumeration.
constexpr std::array<entry, sql::statement_names.size()> entries{{
    {of_lease,
     "SELECT @.attempt_3($1::bytea, $2::bytea, $3::text, $4::text, $5::int2, $6::int4, $7::int4, "
     "$8::bool, $9::bool, $10::bool, $11::int8, $12::int8, $13::int4, $14::bytea, $15::text)"},
    {of_lease, "SELECT @.leave_3($1::bytea, $2::text, $3::int2, $4::int8)"},
    {of_lease, "SELECT @.renew_3($1::bytea[], $2::bytea[], $3::text)"},
    {of_lease, "SELECT @.change_3($1::bytea, $2::bytea, $3::text, $4::int2)"},
    {of_lease,
     "SELECT @.transfer_3($1::bytea, $2::bytea, $3::bytea, $4::text, $5::text, $6::bool, $7::int8, "
     "$8::bytea, $9::bool)"},
    {of_lease, "SELECT @.inspect_3($1::bytea)"},
    {of_lease, "SELECT @.list_3($1::bytea, $2::bytea)"},
    {of_lease, "SELECT @.revoke_3($1::bytea, $2::bool, $3::text)"},
    {of_lease, "SELECT @.change_latch_3($1::bytea, $2::bool, $3::int4, $4::bytea, $5::int8)"},
    {of_lease, "SELECT @.read_latch_3($1::bytea)"},
    {of_lease | of_control, "SELECT @.interest_3($1::bytea[], $2::bytea[], $3::text, $4::int8)"},
    {of_lease | of_control, "SELECT @.ignore_3($1::bytea[], $2::bytea[], $3::text)"},
    {
        of_lease | of_control,
#include "stores/postgresql/examine.sql.inc"
    },
    {of_session,
     "SELECT @.session_attempt_3($1::bytea, $2::bytea, $3::text, $4::text, $5::int2, $6::bool, "
     "$7::int8, $8::int8, $9::int4, $10::bytea, $11::int4)"},
    {of_session, "SELECT @.session_leave_3($1::bytea, $2::bytea, $3::int8, $4::int4)"},
    {of_session, "SELECT @.session_renew_3($1::bytea[], $2::bytea[], $3::int4)"},
    {of_control, "SELECT @.bound_inspect_3($1::bytea, $2::int2)"},
    {of_control, "SELECT @.bound_list_3($1::bytea, $2::bytea, $3::int2)"},
    {of_control, "SELECT @.bound_revoke_3($1::bytea, $2::int2, $3::bool, $4::text)"},
    {of_control, "SELECT @.bound_forced_3($1::bytea, $2::int2, $3::bool)"},
    {of_row, "ROLLBACK"},
    {of_row, "SELECT @.row_take_3($1::bytea, $2::bytea, $3::int2, $4::int4, $5::int4)"},
    {of_row, "SELECT @.row_end_3($1::bytea, $2::bytea, $3::int8, $4::int4)"},
    {of_row, "SELECT @.row_beat_3($1::bytea, $2::int4)"},
    {of_control, "SELECT @.row_make_3($1::bytea)"},
    {of_control,
     "SELECT @.row_record_3($1::bytea, $2::bytea, $3::text, $4::text, $5::int2, $6::int8, "
     "$7::int8, "
     "$8::int4, $9::bytea, $10::int4, $11::int8)"},
    {of_control,
     "SELECT @.row_queue_3($1::bytea, $2::bytea, $3::text, $4::text, $5::int2, $6::bool, $7::int8, "
     "$8::int8, $9::int4, $10::bytea)"},
    {of_control, "SELECT @.row_leave_3($1::bytea, $2::bytea)"},
    {of_control, "SELECT @.row_renew_3($1::bytea[], $2::bytea[])"},
    {of_row, "BEGIN"},
    {of_row, "COMMIT"},
    {0, nullptr},
    {0, nullptr},
}};

}  // namespace

const char* text_of(statement which) noexcept {
  return entries[static_cast<std::size_t>(which)].text;
}

bool serves(statement which, duty what) noexcept {
  return (entries[static_cast<std::size_t>(which)].duties & bit(what)) != 0;
}

namespace {

// Of bytes.
std::string array_of(const std::vector<std::string>& values) {
  std::string array = "{";
  for (const std::string& each : values) {
    if (array.size() > 1) array += ',';
    array += "\"\\\\x" + core::hex_of(each) + "\"";
  }
  return array + "}";
}

}  // namespace

parameters::parameters(const arguments& of, const char* home) {
  using kind = arguments::kind;
  values.reserve(of.all().size());
  lengths.reserve(of.all().size());
  formats.reserve(of.all().size());
  for (const arguments::one& each : of.all()) {
    std::string_view value = each.value;
    if (each.what == kind::list) value = lists_.emplace_back(array_of(each.values));
    if (each.what == kind::home) value = home;
    values.push_back(value.data());
    lengths.push_back(static_cast<int>(value.size()));
    formats.push_back(each.what == kind::bytes ? 1 : 0);
  }
}

std::string encoded_claim(const spi::claim& claim, const std::string& process) {
  std::string words = core::hex_of(sql::bytes_of(claim.id));
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
  add(core::hex_of(claim.payload));
  return words;
}

}  // namespace holdfast::postgresql
