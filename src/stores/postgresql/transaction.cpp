// See include/holdfast/postgresql.hpp.
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/server_error.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/names.hpp"
#include "stores/sql/words.hpp"

#include <holdfast/postgresql.hpp>

#include <libpq-fe.h>

#include <cstdint>
#include <memory>

namespace holdfast::postgresql {

namespace {

constexpr std::size_t longest_name = 512;
constexpr std::size_t longest_space = 64;
constexpr const char* where = "postgresql, the caller's connection";

result<void> usable(PGconn* connection, const std::string& name,
                    const transaction_lock_options& options) {
  if (name.empty() || name.size() > longest_name || options.space.size() > longest_space ||
      options.space.find('/') != std::string::npos) {
    return failure(errc::invalid, "a name has 1 to 512 bytes, a namespace at most 64 and no '/'");
  }
  if (options.wait < duration{0}) return failure(errc::invalid, "wait must not be negative");
  if (!is_schema_name(options.schema)) return failure(errc::invalid, "that is no schema's name");
  if (connection == nullptr || PQtransactionStatus(connection) != PQTRANS_INTRANS) {
    return failure(errc::invalid, "no transaction is open on the connection, or it has failed");
  }
  return {};
}

result<std::string> ask(PGconn* connection, const std::string& query, const arguments& with) {
  const arguments::view all = with.all();
  const std::unique_ptr<PGresult, void (*)(PGresult*)> answer(
      PQexecParams(connection, query.c_str(), static_cast<int>(all.values.size()), nullptr,
                   all.values.data(), all.lengths.data(), all.formats.data(), 0),
      PQclear);
  if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK || PQntuples(answer.get()) != 1) {
    return tl::unexpected(to_error(answer.get(), where, "lock in a transaction").what);
  }
  return std::string(PQgetvalue(answer.get(), 0, 0));
}

// An error would end the caller's transaction: so it is looked first whether all is there.
result<void> prepared(PGconn* connection, const std::string& schema) {
  const auto found = ask(connection,
                         "SELECT CASE WHEN pg_catalog.to_regprocedure('" + schema +
                             ".lock_row_1(bytea, bigint)') IS NULL THEN 'missing' "
                             "ELSE pg_catalog.current_setting('transaction_isolation') END",
                         {});
  if (!found) return tl::unexpected(found.error());
  if (*found == "missing") {
    return failure(errc::unsupported, "the schema " + schema +
                                          " has no holdfast tables; open a client of "
                                          "postgresql:// once, or see `holdfast doctor`");
  }
  if (*found != "read committed") {
    return failure(errc::unsupported, "the transaction is " + *found +
                                          ": it would not see who had the lock before it");
  }
  return {};
}

}  // namespace

result<fence_token> lock_in_transaction(pg_conn* connection, const std::string& name,
                                        const transaction_lock_options& options) {
  if (auto fine = usable(connection, name, options); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (auto fine = prepared(connection, options.schema); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  arguments with;
  with.bytes(sql::key_of({options.space, name})).number(sql::microseconds(options.wait));
  const auto answer =
      ask(connection, in_schema("SELECT @.lock_row_1($1::bytea, $2::int8)", options.schema), with);
  if (!answer) return tl::unexpected(answer.error());
  sql::words line(*answer);
  if (line.word() == "b") {
    return failure(options.wait > duration{0} ? errc::timed_out : errc::busy,
                   "another transaction has it");
  }
  const auto fence = line.number<std::uint64_t>();
  if (!line.fine()) return failure(errc::unavailable, "the answer is not one of this version's");
  return fence_token(fence);
}

}  // namespace holdfast::postgresql
