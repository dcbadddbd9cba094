// A blocking session with a MariaDB server, for a test's own statements beside the store.
#pragma once

#include <mariadb/mysql.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. Throws std::runtime_error with the server's words.
class mariadb_session {
 public:
  explicit mariadb_session(std::uint16_t port, const std::string& user = "tester")
      : connection_(mysql_init(nullptr), mysql_close) {
    if (mysql_real_connect(connection_.get(), "127.0.0.1", user.c_str(), nullptr, "locks", port,
                           nullptr, CLIENT_MULTI_RESULTS) == nullptr) {
      fail();
    }
  }

  // The first column of all rows of the answer.
  std::vector<std::string> ask(const std::string& statement) {
    if (mysql_real_query(connection_.get(), statement.data(), statement.size()) != 0) fail();
    std::vector<std::string> first;
    // If there are no more results, asking for the next would forget how many rows were changed.
    for (int next = 0; next == 0;
         next = mysql_more_results(get()) ? mysql_next_result(get()) : -1) {
      const std::unique_ptr<MYSQL_RES, void (*)(MYSQL_RES*)> result(
          mysql_store_result(connection_.get()), mysql_free_result);
      if (result == nullptr && mysql_field_count(connection_.get()) > 0) fail();
      while (result != nullptr) {
        const MYSQL_ROW row = mysql_fetch_row(result.get());
        if (row == nullptr) break;
        const unsigned long* lengths = mysql_fetch_lengths(result.get());
        first.emplace_back(row[0] == nullptr ? "" : row[0], row[0] == nullptr ? 0 : lengths[0]);
      }
    }
    if (mysql_errno(connection_.get()) != 0) fail();
    return first;
  }

  [[nodiscard]] MYSQL* get() const noexcept { return connection_.get(); }
  [[nodiscard]] unsigned long id() const { return mysql_thread_id(connection_.get()); }

 private:
  [[noreturn]] void fail() { throw std::runtime_error(mysql_error(connection_.get())); }

  std::unique_ptr<MYSQL, void (*)(MYSQL*)> connection_;
};

}  // namespace holdfast::test
