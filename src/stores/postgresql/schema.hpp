// The tables and functions in the server, and their installation.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::postgresql {

// The layout of the tables that this version reads and writes. Functions carry it in their names
// (attempt_3), so that clients of two versions can share a server.
inline constexpr int format = 3;

// One script, one transaction: creates what is missing, also if many clients come at once: the
// first of them wins and the others find it created. An existing schema is used.
std::string installation(std::string_view schema);

// The same as a script for an administrator, if users may not create a schema;
// includes the grants for `user`.
std::string installation_for(std::string_view schema, std::string_view user);

}  // namespace holdfast::postgresql
