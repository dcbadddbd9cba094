#include "stores/postgresql/schema.hpp"

#include "stores/postgresql/statement.hpp"

namespace holdfast::postgresql {

namespace {

constexpr std::string_view tables =
#include "stores/postgresql/tables.sql.inc"
    ;
constexpr std::string_view promote =
#include "stores/postgresql/promote.sql.inc"
    ;
constexpr std::string_view claims =
#include "stores/postgresql/claims.sql.inc"
    ;
constexpr std::string_view renewal =
#include "stores/postgresql/renewal.sql.inc"
    ;
constexpr std::string_view overview =
#include "stores/postgresql/overview.sql.inc"
    ;
constexpr std::string_view bound =
#include "stores/postgresql/bound.sql.inc"
    ;
constexpr std::string_view session_functions =
#include "stores/postgresql/session.sql.inc"
    ;
constexpr std::string_view row =
#include "stores/postgresql/row.sql.inc"
    ;

// Functions mention each other before they are there.
constexpr std::string_view unchecked = "SET LOCAL check_function_bodies = off;\n";

std::string statements(std::string_view schema) {
  std::string script;
  for (const std::string_view part :
       {tables, promote, claims, renewal, overview, bound, session_functions, row}) {
    script += in_schema(part, schema);
  }
  return script;
}

// `text` as a literal that ends nowhere inside.
std::string quoted(const std::string& text) { return "$holdfast$" + text + "$holdfast$"; }

}  // namespace

std::string installation(std::string_view schema) {
  const std::string name(schema);
  // The lock is held until the end of the transaction; its number is specific to
  // holdfast and the schema.
  return "BEGIN;\n" + std::string(unchecked) +
         "SELECT pg_advisory_xact_lock(hashtextextended('holdfast schema " + name +
         "', 0));\nDO $do$ BEGIN\n  IF to_regclass('" + name +
         ".meta') IS NULL THEN\n    IF to_regnamespace('" + name +
         "') IS NULL THEN CREATE SCHEMA " + name + "; END IF;\n    EXECUTE " +
         quoted(statements(schema)) + ";\n  END IF;\nEND $do$;\nCOMMIT;";
}

std::string installation_for(std::string_view schema, std::string_view user) {
  const std::string name(schema);
  std::string owner = "\"";
  for (const char c : user) owner += c == '"' ? std::string("\"\"") : std::string(1, c);
  owner += '"';
  return "BEGIN;\n" + std::string(unchecked) + "CREATE SCHEMA IF NOT EXISTS " + name + ";\n" +
         statements(schema) + "GRANT USAGE ON SCHEMA " + name + " TO " + owner +
         ";\nGRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name + " TO " +
         owner + ";\nGRANT ALL ON ALL SEQUENCES IN SCHEMA " + name + " TO " + owner +
         ";\nGRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA " + name + " TO " + owner + ";\nCOMMIT;\n";
}

}  // namespace holdfast::postgresql
