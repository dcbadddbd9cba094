#include "stores/mariadb/schema.hpp"

#include "stores/sql/common/names.hpp"

#include <algorithm>
#include <cstdint>

namespace holdfast::mariadb {

namespace {

constexpr std::string_view tables =
#include "stores/mariadb/tables.sql.inc"
    ;
constexpr std::string_view promote =
#include "stores/mariadb/promote.sql.inc"
    ;
constexpr std::string_view claims =
#include "stores/mariadb/claims.sql.inc"
    ;
constexpr std::string_view renewal =
#include "stores/mariadb/renewal.sql.inc"
    ;
constexpr std::string_view overview =
#include "stores/mariadb/overview.sql.inc"
    ;
constexpr std::string_view bound =
#include "stores/mariadb/bound.sql.inc"
    ;
constexpr std::string_view line =
#include "stores/mariadb/line.sql.inc"
    ;
constexpr std::string_view session =
#include "stores/mariadb/session.sql.inc"
    ;
constexpr std::string_view row =
#include "stores/mariadb/row.sql.inc"
    ;

constexpr std::string_view separator = "\n//\n";

std::string quoted(std::string_view text, char quote) {
  std::string made(1, quote);
  for (const char c : text) made += c == quote ? std::string(2, c) : std::string(1, c);
  return made + quote;
}

}  // namespace

std::vector<std::string> installation(std::string_view prefix) {
  std::vector<std::string> all;
  for (std::string_view part :
       {tables, promote, claims, renewal, overview, bound, line, session, row}) {
    while (!part.empty()) {
      const std::size_t end = std::min(part.find(separator), part.size());
      all.push_back(sql::with_prefix(part.substr(0, end), prefix));
      part.remove_prefix(std::min(end + separator.size(), part.size()));
    }
  }
  return all;
}

std::string installation_lock(std::string_view database, std::string_view prefix) {
  // Locks have at most 64 characters, and are shared by the whole server: a hash (FNV-1a) of the
  // database and the prefix. A collision only makes two installations wait for each other.
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string_view part : {database, std::string_view("."), prefix}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  return "holdfast_schema_" + std::to_string(hash);
}

std::string installation_for(std::string_view database, std::string_view prefix,
                             std::string_view user) {
  std::string script = "USE " + quoted(database, '`') + ";\nDELIMITER //\n";
  for (const std::string& each : installation(prefix)) {
    const std::size_t begin = std::min(each.find_first_not_of('\n'), each.size());
    script += each.substr(begin, each.find_last_not_of('\n') + 1 - begin) + "\n//\n";
  }
  return script + "DELIMITER ;\nGRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON " +
         quoted(database, '`') + ".* TO " + quoted(user, '\'') + "@'%';\n";
}

}  // namespace holdfast::mariadb
