#include "stores/mariadb/libmariadb.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/mariadb/server_error.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/common/names.hpp"

#include <holdfast/mariadb.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>

namespace holdfast::mariadb {

namespace {

constexpr const char* where = "mariadb, the caller's connection";
constexpr const char* verb = "lock in a transaction";
constexpr unsigned er_no_such_procedure = 1305;

// The first value of the answer, or nothing. unsupported: there is no such procedure.
result<std::string> ask(MYSQL* connection, const std::string& query) {
  const bool failed = mysql_real_query(connection, query.data(), query.size()) != 0;
  const auto free = [](MYSQL_RES* done) { mysql_free_result(done); };
  const std::unique_ptr<MYSQL_RES, decltype(free)> answer(
      failed ? nullptr : mysql_store_result(connection), free);
  if (const unsigned code = mysql_errno(connection); code != 0) {
    error what = to_error(code, mysql_error(connection), where, verb).what;
    if (code == er_no_such_procedure) {
      what = {errc::unsupported,
              "holdfast's tables are not there; open a client of mariadb:// with strategy=row "
              "once, or see `holdfast doctor`"};
    }
    return tl::unexpected(std::move(what));
  }
  const MYSQL_ROW first = answer == nullptr ? nullptr : mysql_fetch_row(answer.get());
  return first == nullptr || first[0] == nullptr ? std::string() : std::string(first[0]);
}

result<void> usable(MYSQL* connection) {
  if (connection == nullptr) return failure(errc::invalid, "no connection");
  const auto facts = ask(connection,
                         "SELECT CONCAT_WS(' ', @@in_transaction, @@innodb_rollback_on_timeout, "
                         "@@tx_isolation)");
  if (!facts) return tl::unexpected(facts.error());
  sql::words seen(*facts);
  if (seen.number() != 1) return failure(errc::invalid, "no transaction is open");
  if (seen.number() != 0) {
    return failure(
        errc::unsupported,
        "innodb_rollback_on_timeout is on: a lock wait that times out would end the transaction");
  }
  if (seen.rest() != "READ-COMMITTED") {
    return failure(errc::unsupported, "the session is " + std::string(seen.rest()) +
                                          ": it would not see the previous holder; SET "
                                          "SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  }
  return {};
}

}  // namespace

result<fence_token> lock_in_transaction(st_mysql* session, const std::string& name,
                                        const transaction_lock_options& options) {
  if (auto fine = sql::check_lock(name, options.name_space); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (!is_prefix(options.prefix)) return failure(errc::invalid, "invalid table prefix");
  if (auto fine = usable(session); !fine) return tl::unexpected(std::move(fine.error()));
  arguments with;
  with.bytes(sql::key_of({options.name_space, name}));
  with.number(std::chrono::ceil<std::chrono::seconds>(std::max(options.wait, duration{0})).count());
  const auto called = ask(
      session, "CALL " + options.prefix + "lock_row_3(" + to_text(with) + ", @holdfast_answer)");
  if (!called) return tl::unexpected(called.error());
  const auto answer = ask(session, "SELECT @holdfast_answer");
  if (!answer) return tl::unexpected(answer.error());
  return sql::to_transaction_fence(*answer, options.wait);
}

}  // namespace holdfast::mariadb
