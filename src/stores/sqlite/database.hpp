// SQLite, as far as this store needs it: a connection, prepared statements, and their failures as
// this project's errors.
//
// Inside a transaction a failure is thrown (`failed`) and caught where the transaction ends, in
// session.cpp: it never leaves this folder.
#pragma once

#include "stores/sqlite/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace holdfast::sqlite {

struct failed {
  error why;
};

// The rest of what is bound and read is integers and bytes.
using bytes = std::string_view;

// One connection. Not thread-safe; belongs to whoever has the session's turn. In a forked child it
// is dead: the first that the child opens itself closes all that it inherited.
class database {
 public:
  // The file grows by this much at a time, so that there is room in it for what the log holds when
  // the disk is full.
  static constexpr int growth = 64 * 1024;

  // Opens the file, which must exist, with this store's settings. denied, name_conflict (not a
  // database), unavailable.
  static result<std::unique_ptr<database>> open(const std::string& path);
  // To read what is in the file itself, and nothing else: takes no lock, makes no file, sees no log.
  static result<std::unique_ptr<database>> open_to_look(const std::string& path);

  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database();

  // A foreign program may hold a write transaction; SQLite can only be asked again and again. This
  // is how long.
  void set_deadline(time_point deadline) noexcept { deadline_ = deadline; }

  // Several statements, without parameters. Throws failed.
  void execute(const std::string& sql);
  std::int64_t pragma_number(const std::string& name);
  std::string pragma_text(const std::string& name);

  // A transaction is open, since it neither ended well nor was rolled back by SQLite itself.
  [[nodiscard]] bool in_transaction() const noexcept;
  void roll_back() noexcept;

  [[nodiscard]] std::int64_t last_row() const noexcept;
  // Rows that the last statement that writes has changed.
  [[nodiscard]] std::int64_t changed_rows() const noexcept;
  [[nodiscard]] sqlite3* get() const noexcept { return handle_; }
  [[nodiscard]] bool inherited() const noexcept { return born_ != fork_generation(); }

  // The file's first bytes are zeros, or missing: somebody may be about to make a database of it.
  [[nodiscard]] bool begins_blank() const noexcept;

  // What the last failure was.
  [[nodiscard]] error last_error() const;

 private:
  explicit database(std::string path);

  static result<std::unique_ptr<database>> prepare(const std::string& path);
  static void close_inherited() noexcept;
  static int wait_for_foreigner(void* self, int times) noexcept;

  const std::string path_;
  sqlite3* handle_ = nullptr;
  time_point deadline_{};
  const std::uint64_t born_ = fork_generation();
  database* next_ = nullptr;  // of all in this process
};

// Prepared at its first use, run often, by `query` and `run`. The text must outlive it.
class statement {
 public:
  statement(database& owner, std::string_view sql) noexcept : owner_(owner), sql_(sql) {}
  statement(const statement&) = delete;
  statement& operator=(const statement&) = delete;
  ~statement();

 private:
  friend class query;

  sqlite3_stmt* prepared();  // throws failed

  database& owner_;
  std::string_view sql_;
  sqlite3_stmt* handle_ = nullptr;
};

// One execution. Bound bytes must outlive it.
class query {
 public:
  template <class... Values>
  explicit query(statement& of, const Values&... values)
      : owner_(of.owner_), handle_(of.prepared()) {
    int place = 0;
    (bind(++place, values), ...);
  }
  query(const query&) = delete;
  query& operator=(const query&) = delete;
  ~query();

  // The next row, if there is one. Throws failed.
  bool next();
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] bytes blob(int column) const;  // valid until next()

 private:
  void bind(int place, std::int64_t value);
  void bind(int place, bytes value);
  void bind(int place, const spi::claim_id& value);

  database& owner_;
  sqlite3_stmt* const handle_;
};

template <class... Values>
void run(statement& of, const Values&... values) {
  query once(of, values...);
  while (once.next()) {
  }
}

}  // namespace holdfast::sqlite
