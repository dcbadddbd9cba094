// The yardsticks of bench/sqlite.cpp: SQLite and flock() alone. One row, behind a writer lock file, in
// write-ahead mode: read and written in an IMMEDIATE transaction, or by one statement that compares
// and writes. No queue, no wake-up, no sign of life, no check that the file is still there.
#pragma once

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

namespace bench {

class bare_sqlite {
 public:
  bare_sqlite(const std::string& path, int page_size) {
    writer_lock_ = ::open((path + ".writer_lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    require(writer_lock_ >= 0);
    require(sqlite3_open_v2(path.c_str(), &database_,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                            nullptr) == SQLITE_OK);
    const std::string set_up =
        "PRAGMA page_size = " + std::to_string(page_size) +
        "; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
        "PRAGMA wal_autocheckpoint = 4000;"
        "CREATE TABLE locks (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
        " last INTEGER NOT NULL, body BLOB NOT NULL);"
        "INSERT INTO locks VALUES (1, 'stock/42', 0, zeroblob(120))";
    require(sqlite3_exec(database_, set_up.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    begin_ = prepared("BEGIN IMMEDIATE");
    read_ = prepared("SELECT key, last, body FROM locks WHERE id = 1");
    write_ = prepared("UPDATE locks SET last = ?1, body = ?2 WHERE id = 1");
    commit_ = prepared("COMMIT");
    exchange_ = prepared("UPDATE locks SET last = ?1, body = ?2 WHERE id = 1 AND last = ?3");
  }
  bare_sqlite(const bare_sqlite&) = delete;
  bare_sqlite& operator=(const bare_sqlite&) = delete;
  ~bare_sqlite() {
    for (sqlite3_stmt* each : {begin_, read_, write_, commit_, exchange_}) sqlite3_finalize(each);
    sqlite3_close(database_);
    ::close(writer_lock_);
  }

  void statement() {
    require(::flock(writer_lock_, LOCK_EX) == 0);
    sqlite3_bind_int64(exchange_, 1, last_ + 1);
    sqlite3_bind_blob(exchange_, 2, body_.data(), static_cast<int>(body_.size()), SQLITE_STATIC);
    sqlite3_bind_int64(exchange_, 3, last_);
    body_[0] = static_cast<char>(++last_);
    require(sqlite3_step(exchange_) == SQLITE_DONE);
    require(sqlite3_changes(database_) == 1);
    sqlite3_reset(exchange_);
    ::flock(writer_lock_, LOCK_UN);
  }

  void transaction() {
    require(::flock(writer_lock_, LOCK_EX) == 0);
    require(sqlite3_step(begin_) == SQLITE_DONE);
    require(sqlite3_step(read_) == SQLITE_ROW);
    const sqlite3_int64 last = sqlite3_column_int64(read_, 1);
    body_[0] = static_cast<char>(last);
    sqlite3_reset(read_);
    sqlite3_bind_int64(write_, 1, last + 1);
    sqlite3_bind_blob(write_, 2, body_.data(), static_cast<int>(body_.size()), SQLITE_STATIC);
    require(sqlite3_step(write_) == SQLITE_DONE);
    require(sqlite3_step(commit_) == SQLITE_DONE);
    for (sqlite3_stmt* each : {begin_, write_, commit_}) sqlite3_reset(each);
    ::flock(writer_lock_, LOCK_UN);
  }

 private:
  static void require(bool fine) {
    if (!fine) throw std::runtime_error("the bare SQLite failed");
  }
  sqlite3_stmt* prepared(const char* sql) {
    sqlite3_stmt* made = nullptr;
    require(sqlite3_prepare_v2(database_, sql, -1, &made, nullptr) == SQLITE_OK);
    return made;
  }

  int writer_lock_ = -1;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* read_ = nullptr;
  sqlite3_stmt* write_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* exchange_ = nullptr;
  sqlite3_int64 last_ = 0;  // by statement() alone
  std::array<char, 120> body_{};
};

}  // namespace bench
