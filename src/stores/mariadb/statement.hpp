// The calls of the stored procedures: which one, with which arguments.
#pragma once

#include "stores/sql/statement.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::mariadb {

using sql::arguments;
using sql::call;
using sql::statement;

// The arguments as text for a statement. Bytes are written as hexadecimal digits and numbers as
// digits, so that no value can become a part of it. `home`: the connection that sends them.
std::string to_text(const arguments& with, std::int64_t home = 0);

// Two bytes of length, the highest first, and the value.
void pack(std::string& into, std::string_view value);

// The whole statement: "CALL holdfast_leave_3(x'..', ...)".
std::string text_of(statement which, const arguments& with, std::string_view prefix,
                    std::int64_t home = 0);

// The fast paths: a prepared statement for a lock that is idle, or has one holder and
// nobody else. It changes one row, and returns the last fence of the grant; or none, and
// the whole call must be made.
std::string fast_attempt(const std::string& key, const spi::claim& claim,
                         const std::string& process);
std::string fast_leave(const std::string& key, const spi::claim& claim);
// Its answer: a grant's fence alone.
std::string fast_grant(std::uint64_t last_fence, const spi::claim& claim);

}  // namespace holdfast::mariadb
