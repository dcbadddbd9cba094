// The tables and procedures in the server, and how they get there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::mariadb {

// The layout of the tables that this version reads and writes. Procedures carry it in their names
// (attempt_3), so that clients of two versions can share a server.
inline constexpr int format = 3;

// One statement each, to be run in this order under the lock below. DDL knows no transaction here: each
// makes only what is missing, so that a first client that died half way is continued by the next; the
// row that says "complete" comes last.
std::vector<std::string> installation(std::string_view prefix);

// The named lock that one of fifty first clients gets, and the others wait for.
std::string installation_lock(std::string_view database, std::string_view prefix);

// The same as an administrator would run it, for those who may not create; with what to grant to
// `user` afterwards.
std::string installation_for(std::string_view database, std::string_view prefix,
                             std::string_view user);

}  // namespace holdfast::mariadb
