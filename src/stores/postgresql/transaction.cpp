#include "stores/postgresql/libpq.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/postgresql/server_error.hpp"
#include "stores/postgresql/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"

#include <holdfast/postgresql.hpp>

#include <algorithm>
#include <memory>

namespace holdfast::postgresql {

namespace {

constexpr const char* where = "postgresql, the caller's connection";

result<void> usable(PGconn* connection, const std::string& name,
                    const transaction_lock_options& options) {
  if (auto fine = sql::check_lock(name, options.name_space); !fine) return fine;
  if (!is_schema_name(options.schema)) return failure(errc::invalid, "invalid schema name");
  if (connection == nullptr || PQtransactionStatus(connection) != PQTRANS_INTRANS) {
    return failure(errc::invalid, "no transaction is open on the connection, or it has failed");
  }
  return {};
}

result<std::string> ask(PGconn* connection, const std::string& query, const arguments& with) {
  const parameters all(with);
  const auto clear = [](PGresult* done) { PQclear(done); };
  const std::unique_ptr<PGresult, decltype(clear)> answer(
      PQexecParams(connection, query.c_str(), static_cast<int>(all.values.size()), nullptr,
                   all.values.data(), all.lengths.data(), all.formats.data(), 0),
      clear);
  if (PQresultStatus(answer.get()) != PGRES_TUPLES_OK || PQntuples(answer.get()) != 1) {
    return tl::unexpected(to_error(answer.get(), where, "lock in a transaction").what);
  }
  return std::string(PQgetvalue(answer.get(), 0, 0));
}

// An error would end the caller's transaction: so first check that everything is there.
result<void> prepared(PGconn* connection, const std::string& schema) {
  const auto found = ask(connection,
                         "SELECT CASE WHEN pg_catalog.to_regprocedure('" + schema +
                             ".lock_row_3(bytea, bigint)') IS NULL THEN 'missing' "
                             "ELSE pg_catalog.current_setting('transaction_isolation') END",
                         {});
  if (!found) return tl::unexpected(found.error());
  if (*found == "missing") {
    return failure(errc::unsupported, "the schema " + schema +
                                          " has no holdfast tables; open a client of "
                                          "postgresql:// once, or see `holdfast doctor`");
  }
  if (*found != "read committed") {
    return failure(errc::unsupported,
                   "the transaction is " + *found + ": it would not see the previous holder");
  }
  return {};
}

}  // namespace

result<fence_token> lock_in_transaction(pg_conn* session, const std::string& name,
                                        const transaction_lock_options& options) {
  if (auto fine = usable(session, name, options); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (auto fine = prepared(session, options.schema); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  arguments with;
  with.bytes(sql::key_of({options.name_space, name}))
      .number(sql::microseconds(std::max(options.wait, duration{0})));
  const auto answer =
      ask(session, in_schema("SELECT @.lock_row_3($1::bytea, $2::int8)", options.schema), with);
  if (!answer) return tl::unexpected(answer.error());
  return sql::to_transaction_fence(*answer, options.wait);
}

}  // namespace holdfast::postgresql
