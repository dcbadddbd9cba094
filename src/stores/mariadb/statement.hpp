// The calls of the stored procedures: which one, with which arguments.
#pragma once

#include "stores/sql/statement.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::mariadb {

using sql::statement;

// The arguments of one call, as they stand in its text. Bytes are written as hexadecimal digits and
// numbers as digits, so that no value can become a part of the statement.
class arguments {
 public:
  arguments& bytes(std::string_view value);
  arguments& text(std::string_view value) { return bytes(value); }
  arguments& number(std::int64_t value);
  arguments& flag(bool value) { return number(value ? 1 : 0); }
  // As text that can stand in a statement: '0xff00,0xaa'.
  arguments& numbers(const std::vector<std::string>& values);
  // Each with two bytes of length before it.
  arguments& list(const std::vector<std::string>& values);
  arguments& home();  // the connection that sends it: filled in by its link

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void separate();

  std::string text_;
};

// Two bytes of length, the highest first, and the value.
void pack(std::string& into, std::string_view value);

// What stands for home() in a statement's text, in which nothing else can look like it.
inline constexpr char home_mark = '?';

// The whole statement: "CALL holdfast_leave_2(x'..', ...)".
std::string text_of(statement which, const arguments& with, std::string_view prefix);

// What a link sends. `fast_path` is tried first, where it is not empty: if it changes a row, the answer is a
// row with its number alone; if it changes none, the whole call is made.
struct call {
  statement which{};
  arguments with{};
  std::string fast_path{};
};

// The fast paths: a prepared statement for a lock that is idle, or has one holder and nobody else. It
// changes one row, and has said the last fence of the grant; or none, and the whole call must be made.
std::string fast_attempt(const std::string& key, const spi::claim& claim,
                         const std::string& process);
std::string fast_leave(const std::string& key, const spi::claim& claim);
// What it answers: a grant's fence alone.
std::string fast_grant(std::uint64_t last_fence, const spi::claim& claim);

}  // namespace holdfast::mariadb
