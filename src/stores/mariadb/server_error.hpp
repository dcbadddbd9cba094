// What an error of the server or of libmariadb means: is it worth trying again, is it about us?
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
  bool ends_link = false;  // nothing good comes on this connection any more
  bool retry = false;      // rolled back whole, and may go better at once
};

// The error of a statement. unavailable: it may go better next time; every error rolls its call back.
// denied: says what to grant. `during`: the verb.
server_error to_error(unsigned code, std::string_view message, std::string_view where,
                      std::string_view during);

// Why no connection could be made.
error connect_error(unsigned code, std::string_view message, std::string_view where);

}  // namespace holdfast::mariadb
