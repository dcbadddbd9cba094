// What an error of the server or of libmariadb means: is it worth retrying, is it our fault?
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::mariadb {

inline constexpr unsigned er_no_such_table = 1146;
inline constexpr unsigned er_query_interrupted = 1317;

struct server_error {
  error what;
  bool ends_link = false;  // this connection is of no further use
  bool retry = false;      // rolled back completely; an immediate retry may succeed
};

// The error of a statement. unavailable: a later retry may succeed; every error rolls its call
// back. denied: says what to grant. `during`: the verb.
server_error to_error(unsigned code, std::string_view message, std::string_view where,
                      std::string_view during);

// Why no connection could be made.
error connect_error(unsigned code, std::string_view message, std::string_view where);

}  // namespace holdfast::mariadb
