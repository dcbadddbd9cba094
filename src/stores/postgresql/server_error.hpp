// What an error of the server or of libpq means: is it worth retrying, is it our fault?
#pragma once

#include "stores/postgresql/libpq.hpp"

#include <holdfast/result.hpp>

#include <string>
#include <string_view>

namespace holdfast::postgresql {

struct server_error {
  error what;
  bool ends_link = false;  // this connection is of no further use
};

// An error result. unavailable: a later retry may succeed; every error rolls its statement back.
// denied: says what to grant. `during`: the verb.
server_error to_error(const PGresult* failed, std::string_view where, std::string_view during);

// Why no connection could be made: libpq only has a text for it, in the server's language.
error connect_error(std::string_view message, std::string_view where);

// The first line of a message, without the endings that libpq adds.
std::string first_line(std::string_view message);

}  // namespace holdfast::postgresql
