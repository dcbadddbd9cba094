// A connection of SQLite's own making, for tests of the file system that the embedded store gives it.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace holdfast::test {

namespace fs = std::filesystem;

class connection {
 public:
  connection(const fs::path& file, const char* vfs) {
    const int opened =
        sqlite3_open_v2(file.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
    if (opened != SQLITE_OK) throw std::runtime_error("cannot open");
  }
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() { sqlite3_close(handle_); }

  void execute(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sql << ": " << sqlite3_errmsg(handle_);
  }
  std::string text(const std::string& sql) {
    sqlite3_stmt* asked = nullptr;
    sqlite3_prepare_v2(handle_, sql.c_str(), -1, &asked, nullptr);
    std::string answer;
    const bool found = sqlite3_step(asked) == SQLITE_ROW;
    if (const auto* text = found ? sqlite3_column_text(asked, 0) : nullptr) {
      answer = reinterpret_cast<const char*>(text);
    }
    sqlite3_finalize(asked);
    return answer;
  }
  void set_up(int page_size) {
    execute("PRAGMA page_size = " + std::to_string(page_size) +
            "; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
            "PRAGMA wal_autocheckpoint = 0;"
            "CREATE TABLE lines (id INTEGER PRIMARY KEY, text TEXT NOT NULL)");
  }

  [[nodiscard]] sqlite3* get() const noexcept { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

inline const std::string all_lines =
    "SELECT group_concat(id || text) FROM (SELECT * FROM lines ORDER BY id)";

}  // namespace holdfast::test
