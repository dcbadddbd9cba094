// The calls of the stored functions: which one, with which arguments.
#pragma once

#include "stores/sql/names.hpp"
#include "stores/sql/statement.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::postgresql {

using sql::statement;

// What a connection is for, and so which statements it has.
enum class duty : std::uint8_t {
  lease,               // the verbs of strategy=lease
  session,             // carries the holds of strategy=session
  row,                 // carries one hold of strategy=row, in a transaction
  control_connection,  // looks and interests, for strategies whose holds are bound to other connections
  notification_listener,  // listens
};
// For sets of them.
constexpr unsigned bit(duty what) { return 1U << static_cast<unsigned>(what); }
bool serves(statement which, duty what) noexcept;

// As it is prepared, once per connection; "@." is still to be replaced by the schema.
const char* text_of(statement which) noexcept;

// "@." in the text becomes the schema's name.
inline std::string in_schema(std::string_view text, std::string_view schema) {
  return sql::with_prefix(text, std::string(schema) + '.');
}

// The arguments of one call: any bytes, nothing is ever put into the text of a statement.
class arguments {
 public:
  arguments() { values_.reserve(usual); }

  arguments& bytes(std::string_view value);
  arguments& text(std::string_view value);
  arguments& number(std::int64_t value);
  arguments& flag(bool value);
  arguments& list(const std::vector<std::string>& values);  // of bytes
  arguments& home();  // the backend of the link that sends it: filled in there

  struct view {
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
    std::optional<std::size_t> home;  // which of them
  };
  // Valid as long as this object is neither changed nor moved.
  [[nodiscard]] view all() const;

 private:
  struct one {
    std::string value;
    bool binary;
  };
  static constexpr std::size_t usual = 16;  // an attempt has 15

  std::vector<one> values_;
  std::optional<std::size_t> home_;
};

// What a link sends.
struct call {
  statement which{};
  arguments with{};
};

// A claim as text: what it is asked with, in the form that stands in the name's row while it is the only
// holder, or the first one that waits. docs/formats/sql.md says which.
// `process`: by which the others know the client.
std::string encoded_claim(const spi::claim& claim, const std::string& process);

}  // namespace holdfast::postgresql
