// The calls of the stored functions: which one, with which arguments.
#pragma once

#include "stores/sql/common/names.hpp"
#include "stores/sql/statement.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::postgresql {

using sql::arguments;
using sql::call;
using sql::statement;

// What a connection is for, which determines its statements.
enum class duty : std::uint8_t {
  lease,               // the verbs of strategy=lease
  session,             // carries the holds of strategy=session
  row,                 // carries one hold of strategy=row, in a transaction
  control_connection,  // looks and interests, for strategies whose holds are bound to other connections
  notification_listener,  // listens
};
// For sets of duties.
constexpr unsigned bit(duty what) { return 1U << static_cast<unsigned>(what); }
bool serves(statement which, duty what) noexcept;

// As it is prepared, once per connection; "@." must still be replaced by the schema.
const char* text_of(statement which) noexcept;

// "@." in the text becomes the schema's name.
inline std::string in_schema(std::string_view text, std::string_view schema) {
  return sql::with_prefix(text, std::string(schema) + '.');
}

// Arguments as libpq takes them: nothing is ever inserted into the text of a statement.
// Valid as long as those are.
struct parameters {
  // `home`: the backend of the link that sends them.
  explicit parameters(const arguments& of, const char* home = "");

  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;

 private:
  std::deque<std::string> lists_;
};

// A claim as text: its request, in the form that is stored in the name's row while it is the
// only holder, or the first waiter; docs/formats/sql.md has the format. `process`: the
// others' name for the client.
std::string encoded_claim(const spi::claim& claim, const std::string& process);

}  // namespace holdfast::postgresql
