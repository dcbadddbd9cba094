// The yardstick of the MariaDB store: libmariadb alone. A row that is taken and released by
// prepared statements, each a transaction; no queue, no wake-up, no lease.
#pragma once

#include "support/mariadb_session.hpp"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

namespace bench {

class bare_mariadb_row {
 public:
  bare_mariadb_row(std::uint16_t port, const std::string& name) : session_(port) {
    session_.ask(
        "CREATE TABLE IF NOT EXISTS bare (name VARBINARY(64) PRIMARY KEY, owner BIGINT NOT NULL, "
        "turn BIGINT NOT NULL) ENGINE=InnoDB");
    session_.ask("INSERT IGNORE INTO bare VALUES ('" + name + "', 0, 0)");
    session_.ask("SET SESSION tx_isolation = 'READ-COMMITTED'");
    take_ = prepared("UPDATE bare SET owner = 1 WHERE name = '" + name + "' AND owner = 0");
    // An update that changes nothing would not be written.
    give_ = prepared("UPDATE bare SET owner = 0, turn = turn + 1 WHERE name = '" + name + "'");
    give();
  }

  bool take() { return executed(*take_) == 1; }
  void give() { executed(*give_); }

 private:
  using statement = std::unique_ptr<MYSQL_STMT, bool (*)(MYSQL_STMT*)>;

  statement prepared(const std::string& text) {
    statement made(mysql_stmt_init(session_.get()),
                   [](MYSQL_STMT* each) { return mysql_stmt_close(each) != 0; });
    if (mysql_stmt_prepare(made.get(), text.data(), text.size()) != 0) {
      throw std::runtime_error(mysql_stmt_error(made.get()));
    }
    return made;
  }

  static unsigned long long executed(MYSQL_STMT& which) {
    if (mysql_stmt_execute(&which) != 0) throw std::runtime_error(mysql_stmt_error(&which));
    return mysql_stmt_affected_rows(&which);
  }

  holdfast::test::mariadb_session session_;
  statement take_{nullptr, nullptr};
  statement give_{nullptr, nullptr};
};

}  // namespace bench
