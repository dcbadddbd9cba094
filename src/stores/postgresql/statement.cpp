// See the header.
#include "stores/postgresql/statement.hpp"

#include "stores/sql/names.hpp"

namespace holdfast::postgresql {

namespace {

struct entry {
  const char* name;
  const char* text;
};

// In the order of the enumeration.
constexpr std::array<entry, statement_count> entries{{
    {"attempt",
     "SELECT @.attempt_1($1::bytea, $2::bytea, $3::text, $4::text, $5::int2, $6::int4, $7::int4, "
     "$8::bool, $9::bool, $10::bool, $11::int8, $12::int8, $13::int4, $14::bytea)"},
    {"leave", "SELECT @.leave_1($1::bytea, $2::bytea, $3::bool, $4::int8)"},
    {"renew", "SELECT @.renew_1($1::bytea[], $2::bytea[], $3::text)"},
    {"change", "SELECT @.change_1($1::bytea, $2::bytea, $3::text, $4::int2)"},
    {"inspect", "SELECT @.inspect_1($1::bytea)"},
    {"list", "SELECT @.list_1($1::bytea, $2::bytea)"},
    {"revoke", "SELECT @.revoke_1($1::bytea, $2::bool, $3::text)"},
    {"change_latch", "SELECT @.change_latch_1($1::bytea, $2::bool, $3::int4, $4::bytea, $5::int8)"},
    {"read_latch", "SELECT @.read_latch_1($1::bytea)"},
    {"listen", "SELECT @.listen_1($1::bytea[], $2::bytea[], $3::text, $4::int8)"},
    {"ignore", "SELECT @.ignore_1($1::bytea[], $2::bytea[], $3::text)"},
    {
        "examine",
#include "stores/postgresql/examine.sql.inc"
    },
}};

}  // namespace

const char* name_of(statement which) noexcept {
  return entries[static_cast<std::size_t>(which)].name;
}

const char* text_of(statement which) noexcept {
  return entries[static_cast<std::size_t>(which)].text;
}

std::string in_schema(std::string_view text, std::string_view schema) {
  std::string made;
  made.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = text.find("@.", at);
    made += text.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    made += schema;
    made += '.';
    at = mark + 2;
  }
  return made;
}

arguments& arguments::bytes(std::string_view value) {
  values_.push_back({std::string(value), true});
  return *this;
}

arguments& arguments::text(std::string_view value) {
  values_.push_back({std::string(value), false});
  return *this;
}

arguments& arguments::number(std::int64_t value) { return text(std::to_string(value)); }

arguments& arguments::flag(bool value) { return text(value ? "t" : "f"); }

arguments& arguments::list(const std::vector<std::string>& values) {
  std::string array = "{";
  for (const std::string& each : values) {
    if (array.size() > 1) array += ',';
    array += "\"\\\\x" + sql::to_hex(each) + "\"";
  }
  return text(array + "}");
}

arguments::view arguments::all() const {
  view made;
  for (const one& each : values_) {
    made.values.push_back(each.value.c_str());
    made.lengths.push_back(static_cast<int>(each.value.size()));
    made.formats.push_back(each.binary ? 1 : 0);
  }
  return made;
}

}  // namespace holdfast::postgresql
