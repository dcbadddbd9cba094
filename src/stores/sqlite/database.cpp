#include "stores/sqlite/database.hpp"

#include "core/hex.hpp"
#include "stores/sqlite/descriptor.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::sqlite {

namespace {

// All connections of this process, so that a child can close what it inherits. A thread is inside
// SQLite while it changes them, so that a child finds them consistent.
constinit std::mutex list_mutex;
constinit database* first = nullptr;  // guarded by list_mutex

constexpr duration foreigner_pause = std::chrono::milliseconds(1);

errc code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return errc::denied;
    case SQLITE_NOTADB:
      return errc::name_conflict;
    default:
      return errc::unavailable;
  }
}

// `cause`: the system's own number. SQLite keeps that of the last I/O error, so for
// another error it means nothing.
std::string advice_of(int result, int cause) {
  switch (result & 0xff) {
    case SQLITE_IOERR:
      return cause == ENOSPC || cause == EDQUOT ? "; the disk is full: free some space" : "";
    case SQLITE_BUSY:
      return "; another program has locked it";
    case SQLITE_NOTADB:
      return "; choose another file, this one is left unchanged";
    case SQLITE_FULL:
      return "; free some space";
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return "; the file and its folder must be writable";
    default:
      return {};
  }
}

}  // namespace

database::database(std::string path) : path_(std::move(path)) {
  const inside_sqlite inside;
  const std::lock_guard lock(list_mutex);
  next_ = std::exchange(first, this);
}

result<std::unique_ptr<database>> database::prepare(const std::string& path) {
  if (auto whole = check_inheritance(); !whole) return tl::unexpected(std::move(whole.error()));
  close_inherited();
  return std::unique_ptr<database>(new database(path));
}

// Closing affects no lock of the parent: POSIX locks belong to the process that took them, and
// nothing is copied back from the log (see open()).
void database::close_inherited() noexcept {
  const std::lock_guard lock(list_mutex);
  for (database** at = &first; *at != nullptr;) {
    database& each = **at;
    if (!each.inherited()) {
      at = &each.next_;
      continue;
    }
    *at = each.next_;
    while (sqlite3_stmt* left = sqlite3_next_stmt(each.handle_, nullptr)) sqlite3_finalize(left);
    sqlite3_close(std::exchange(each.handle_, nullptr));
  }
}

// Not by open() and read(): closing a descriptor of a file that this process has open as a database
// drops SQLite's locks on it. SQLite itself keeps track of both.
result<std::unique_ptr<database>> database::open_to_look(const std::string& path) {
  const inside_sqlite inside;
  auto prepared = prepare(path);
  if (!prepared) return prepared;
  std::unique_ptr<database> made = std::move(*prepared);
  const std::string uri = "file:" + core::path_in_url(path) + "?immutable=1";
  const int opened =
      sqlite3_open_v2(uri.c_str(), &made->handle_,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nullptr);
  if (opened != SQLITE_OK) return tl::unexpected(made->last_error());
  sqlite3_extended_result_codes(made->handle_, 1);
  return made;
}

result<std::unique_ptr<database>> database::open(const std::string& path) {
  const inside_sqlite inside;
  auto prepared = prepare(path);
  if (!prepared) return prepared;
  std::unique_ptr<database> made = std::move(*prepared);
  // No mutex: the session's turn keeps threads apart.
  const int opened = sqlite3_open_v2(path.c_str(), &made->handle_,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  if (opened != SQLITE_OK) return tl::unexpected(made->last_error());
  sqlite3_extended_result_codes(made->handle_, 1);
  sqlite3_busy_handler(made->handle_, &database::wait_for_foreigner, made.get());
  // Otherwise the last one to close would pay for a checkpoint and two syncs,
  // at the end of every `run`.
  sqlite3_db_config(made->handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  int keep = 1;
  sqlite3_file_control(made->handle_, nullptr, SQLITE_FCNTL_PERSIST_WAL, &keep);
  int chunk = growth;
  sqlite3_file_control(made->handle_, nullptr, SQLITE_FCNTL_CHUNK_SIZE, &chunk);
  return made;
}

database::~database() {
  const inside_sqlite inside;
  {
    const std::lock_guard lock(list_mutex);
    database** at = &first;
    while (*at != nullptr && *at != this) at = &(*at)->next_;
    if (*at == this) *at = next_;
  }
  if (inherited()) return;
  // Statements are gone by now: they are members of this object's owner.
  sqlite3_close_v2(handle_);
}

int database::wait_for_foreigner(void* self, int) noexcept {
  const auto& owner = *static_cast<const database*>(self);
  const duration left = owner.deadline_ - clock::now();
  if (left <= duration{0}) return 0;
  // SQLite does not notify anybody when a lock is released; our own processes use
  // the writer lock instead.
  std::this_thread::sleep_for(std::min(left, foreigner_pause));
  return 1;
}

void database::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw failed{last_error()};
  }
}

std::int64_t database::pragma_number(const std::string& name) {
  const std::string sql = "PRAGMA " + name;
  statement asked(*this, sql);
  query answer(asked);
  return answer.next() ? answer.number(0) : 0;
}

std::string database::pragma_text(const std::string& name) {
  const std::string sql = "PRAGMA " + name;
  statement asked(*this, sql);
  query answer(asked);
  return answer.next() ? std::string(answer.blob(0)) : std::string();
}

bool database::in_transaction() const noexcept { return sqlite3_get_autocommit(handle_) == 0; }

void database::roll_back() noexcept {
  if (in_transaction()) sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

std::int64_t database::last_row() const noexcept { return sqlite3_last_insert_rowid(handle_); }

std::int64_t database::changed_rows() const noexcept { return sqlite3_changes(handle_); }

// Uses SQLite's own descriptor: see open_to_look().
bool database::begins_blank() const noexcept {
  const inside_sqlite inside;
  sqlite3_file* file = nullptr;
  if (sqlite3_file_control(handle_, nullptr, SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      file == nullptr || file->pMethods == nullptr) {
    return false;
  }
  std::array<char, 16> start{};
  const int read = file->pMethods->xRead(file, start.data(), static_cast<int>(start.size()), 0);
  return (read == SQLITE_OK || read == SQLITE_IOERR_SHORT_READ) &&
         std::ranges::all_of(start, [](char each) { return each == '\0'; });
}

error database::last_error() const {
  const int result = sqlite3_extended_errcode(handle_);
  return {code_of(result), "sqlite, " + path_ + ", " + sqlite3_errmsg(handle_) + " (" +
                               std::to_string(result) + ")" +
                               advice_of(result, sqlite3_system_errno(handle_))};
}

sqlite3_stmt* statement::prepared() {
  if (handle_ == nullptr &&
      sqlite3_prepare_v3(owner_.get(), sql_.data(), static_cast<int>(sql_.size()),
                         SQLITE_PREPARE_PERSISTENT, &handle_, nullptr) != SQLITE_OK) {
    throw failed{owner_.last_error()};
  }
  return handle_;
}

statement::~statement() {
  if (handle_ == nullptr || owner_.inherited()) return;
  const inside_sqlite inside;
  sqlite3_finalize(handle_);
}

query::~query() { sqlite3_reset(handle_); }

bool query::next() {
  const int stepped = sqlite3_step(handle_);
  if (stepped == SQLITE_ROW) return true;
  if (stepped == SQLITE_DONE) return false;
  throw failed{owner_.last_error()};
}

std::int64_t query::number(int column) const { return sqlite3_column_int64(handle_, column); }

bytes query::blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(handle_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column));
  return data == nullptr ? bytes() : bytes(data, size);
}

// A failed bind (no memory, too large) shows at the step, which then fails or finds nothing.
void query::bind(int place, std::int64_t value) { sqlite3_bind_int64(handle_, place, value); }

void query::bind(int place, bytes value) {
  // An empty view may have no address, which would bind NULL.
  sqlite3_bind_blob(handle_, place, value.empty() ? "" : value.data(),
                    static_cast<int>(value.size()), SQLITE_STATIC);
}

void query::bind(int place, const spi::claim_id& value) {
  bind(place, bytes(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

namespace {

constexpr std::string_view statement_texts =
#include "stores/sqlite/statements.sql.inc"
    ;
constexpr std::string_view mark = "-- name: ";

}  // namespace

std::string_view statement_text(std::string_view name) noexcept {
  for (std::size_t at = statement_texts.find(mark); at != std::string_view::npos;
       at = statement_texts.find(mark, at + 1)) {
    const std::size_t end_of_name = statement_texts.find('\n', at);
    if (statement_texts.substr(at + mark.size(), end_of_name - at - mark.size()) != name) continue;
    const std::size_t end = statement_texts.find(mark, end_of_name);
    return statement_texts.substr(end_of_name + 1,
                                  end == std::string_view::npos ? end : end - end_of_name - 1);
  }
  return {};
}

void format::check(database& opened, const std::string& path) {
  const auto refuse = [&path](errc code, const std::string& why) {
    throw failed{{code, "sqlite, open " + path + ", " + why}};
  };
  // The first look at the file: a file that is not a database shows here.
  const std::int64_t found = opened.pragma_number("application_id");
  const std::int64_t written = opened.pragma_number("user_version");
  if (found == application) {
    if (written > version) {
      refuse(errc::unsupported, "written by a newer holdfast (format " + std::to_string(written) +
                                    ", this one knows " + std::to_string(version) +
                                    "): update this program, or name another file");
    }
    return;
  }
  statement asked(opened, "SELECT count(*) FROM sqlite_master");
  query tables(asked);
  const bool empty = tables.next() && tables.number(0) == 0 && found == 0 && written == 0;
  if (!empty) {
    refuse(errc::name_conflict, "another program's database; name another file");
  }
}

result<void> format::look(const std::string& path) {
  const inside_sqlite inside;
  auto opened = database::open_to_look(path);
  if (!opened) return {};  // opening it for use says why
  // A new file is enlarged before its first page is written: opening it for use waits for that.
  if ((*opened)->begins_blank()) return {};
  try {
    check(**opened, path);
  } catch (const failed& failure) {
    // Anything else may be a write in progress.
    if (failure.why == errc::name_conflict || failure.why == errc::unsupported) {
      return tl::unexpected(failure.why);
    }
  }
  return {};
}

}  // namespace holdfast::sqlite
