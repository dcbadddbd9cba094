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

// One connection. Not thread-safe; belongs to the thread that has the session's turn. In a forked
// child it is dead: the first connection that the child opens closes all inherited ones.
class database {
 public:
  // The file grows by this much at a time, so that it has room for the content of the
  // log when the disk is full.
  static constexpr int growth = 64 * 1024;

  // Opens the file, which must exist, with this store's settings. denied, name_conflict (not a
  // database), unavailable.
  static result<std::unique_ptr<database>> open(const std::string& path);
  // Only to read what is in the file itself: takes no lock, creates no file, sees no log.
  static result<std::unique_ptr<database>> open_to_look(const std::string& path);

  database(const database&) = delete;
  database& operator=(const database&) = delete;
  ~database();

  // A foreign program may hold a write transaction; SQLite can only be polled.
  // This limits for how long.
  void set_deadline(time_point deadline) noexcept { deadline_ = deadline; }

  // Several statements, without parameters. Throws failed.
  void execute(const std::string& sql);
  std::int64_t pragma_number(const std::string& name);
  std::string pragma_text(const std::string& name);

  // A transaction is open, since it neither ended well nor was rolled back by SQLite itself.
  [[nodiscard]] bool in_transaction() const noexcept;
  void roll_back() noexcept;

  [[nodiscard]] std::int64_t last_row() const noexcept;
  // Rows changed by the last statement that writes.
  [[nodiscard]] std::int64_t changed_rows() const noexcept;
  [[nodiscard]] sqlite3* get() const noexcept { return handle_; }
  [[nodiscard]] bool inherited() const noexcept { return born_ != fork_generation(); }

  // The file's first bytes are zeros, or missing: somebody may be about to create a database in it.
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

// Prepared at its first use, and run often, by `query` and `run`. The text must outlive it.
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

// Every statement of the store, by name; their text is in statements.sql.inc.
//
// The text of a statement; empty if there is none of that name.
std::string_view statement_text(std::string_view name) noexcept;

// Belongs to its connection.
struct statements {
  explicit statements(database& connection) : owner(connection) {}

  database& owner;

  statement begin{owner, statement_text("begin")};
  statement commit{owner, statement_text("commit")};
  statement begin_read{owner, statement_text("begin_read")};
  statement meta{owner, statement_text("meta")};
  statement set_floor{owner, statement_text("set_floor")};
  statement set_boot{owner, statement_text("set_boot")};
  statement client{owner, statement_text("client")};
  statement clients{owner, statement_text("clients")};
  statement insert_client{owner, statement_text("insert_client")};
  statement delete_all_clients{owner, statement_text("delete_all_clients")};
  statement delete_client{owner, statement_text("delete_client")};
  statement resource{owner, statement_text("resource")};
  statement insert_resource{owner, statement_text("insert_resource")};
  statement update_resource{owner, statement_text("update_resource")};
  statement exchange_resource{owner, statement_text("exchange_resource")};
  statement delete_resource{owner, statement_text("delete_resource")};
  statement resources_from{owner, statement_text("resources_from")};
  statement resource_after{owner, statement_text("resource_after")};
  statement resources_named{owner, statement_text("resources_named")};
  statement greatest_last{owner, statement_text("greatest_last")};
  statement claim{owner, statement_text("claim")};
  statement insert_claim{owner, statement_text("insert_claim")};
  statement delete_claim{owner, statement_text("delete_claim")};
  statement delete_line{owner, statement_text("delete_line")};
  statement delete_all_claims{owner, statement_text("delete_all_claims")};
  statement claims{owner, statement_text("claims")};
  statement before{owner, statement_text("before")};
  statement after{owner, statement_text("after")};
  statement holding_clients{owner, statement_text("holding_clients")};
  statement observers{owner, statement_text("observers")};
  statement insert_observer{owner, statement_text("insert_observer")};
  statement delete_observer{owner, statement_text("delete_observer")};
  statement delete_all_observers{owner, statement_text("delete_all_observers")};
  statement delete_observers_of{owner, statement_text("delete_observers_of")};
  statement latch{owner, statement_text("latch")};
  statement set_latch{owner, statement_text("set_latch")};
  statement delete_latch{owner, statement_text("delete_latch")};
  statement latch_change{owner, statement_text("latch_change")};
  statement insert_latch_change{owner, statement_text("insert_latch_change")};
  statement end_latch_changes{owner, statement_text("end_latch_changes")};
  statement forget_latch_changes{owner, statement_text("forget_latch_changes")};
  statement delete_latch_changes{owner, statement_text("delete_latch_changes")};
};

// Checks whose file it is: ours, in a known format, or new. Anything else is left as it is.
//
// The values are in the database. 1: nobody waited in a resource's own row; 2: no grant was an
// offer. Opening such a file makes it a 3 (see join()).
struct format {
  static constexpr std::int64_t application = 0x486f6c64;  // "Hold"
  static constexpr std::int64_t version = 3;

  // Throws failed. name_conflict: not a database, or another program's. unsupported: written by a
  // newer version.
  static void check(database& opened, const std::string& path);

  // The same before anything is opened for writing, locked or created beside the file. Does not see
  // what is only in a write-ahead log, so ok is not final.
  static result<void> look(const std::string& path);
};

}  // namespace holdfast::sqlite
