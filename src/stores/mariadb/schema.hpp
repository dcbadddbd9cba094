// The tables and procedures in the server, and their installation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::mariadb {

// The layout of the tables that this version reads and writes. Procedures carry it in their names
// (attempt_3), so that clients of two versions can share a server.
inline constexpr int format = 3;

// One statement each, to be run in this order under the lock below. DDL is not transactional here:
// each statement creates only what is missing, so that the next client continues if the first one
// died half way; the row that says "complete" comes last.
std::vector<std::string> installation(std::string_view prefix);

// The named lock that only one of many first clients gets, while the others wait.
std::string installation_lock(std::string_view database, std::string_view prefix);

// The same as a script for an administrator, if users may not create tables;
// includes the grants for `user`.
std::string installation_for(std::string_view database, std::string_view prefix,
                             std::string_view user);

}  // namespace holdfast::mariadb
