// The tables and functions in the server, and how they get there.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::postgresql {

// The layout of the tables that this version reads and writes. Functions carry it in their names
// (attempt_3), so that clients of two versions can share a server.
inline constexpr int format = 3;

// One script, one transaction: makes what is missing, also where fifty clients come at once, the
// first of them wins and the others find it made. A schema that is there already is used.
std::string installation(std::string_view schema);

// The same as an administrator would run it, for those who may not create; with what to grant to
// `user` afterwards.
std::string installation_for(std::string_view schema, std::string_view user);

}  // namespace holdfast::postgresql
