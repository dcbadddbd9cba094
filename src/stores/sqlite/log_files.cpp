// See the header.
//
// What must hold:
//  1. Nothing is kept back but the head of a page behind everything that was written before, whose
//     body SQLite writes next: heads alone are written again only where they are already.
//  2. Whatever comes instead of that body, the head is written first.
// So nothing is ever kept back when a transaction ends.
#include "stores/sqlite/log_files.hpp"

#include "stores/sqlite/read_marks.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <new>

namespace holdfast::sqlite::log_files {

namespace {

constexpr int head_size = 24;    // of SQLite's format
constexpr int body_size = 1024;  // at most; larger pages are written as SQLite does

// Made in memory of SQLite's, with the file that does the work behind it.
struct log_file {
  sqlite3_file base;
  sqlite3_int64 end;      // of the page or header of the log that was written last
  sqlite3_int64 head_at;  // where the head belongs
  bool head_kept;
  std::array<char, head_size + body_size> page;
};

constexpr std::size_t inner_at =
    (sizeof(log_file) + alignof(std::max_align_t) - 1) & ~(alignof(std::max_align_t) - 1);

log_file& outer(sqlite3_file* file) { return *reinterpret_cast<log_file*>(file); }

sqlite3_file* inner(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + inner_at);
}

int write_through(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  return inner(file)->pMethods->xWrite(inner(file), data, size, at);
}

int write_kept_head(sqlite3_file* file) {
  log_file& log = outer(file);
  if (!log.head_kept) return SQLITE_OK;
  log.head_kept = false;
  return write_through(file, log.page.data(), head_size, log.head_at);
}

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 at) {
  log_file& log = outer(file);
  if (log.head_kept && at == log.head_at + head_size && size <= body_size) {
    log.head_kept = false;
    log.end = at + size;
    std::memcpy(log.page.data() + head_size, data, static_cast<std::size_t>(size));
    return write_through(file, log.page.data(), head_size + size, log.head_at);
  }
  if (const int written = write_kept_head(file); written != SQLITE_OK) return written;
  if (size != head_size) {
    log.end = at + size;
  } else if (at >= log.end) {
    std::memcpy(log.page.data(), data, head_size);
    log.head_at = at;
    log.head_kept = true;
    return SQLITE_OK;
  }
  return write_through(file, data, size, at);
}

int close(sqlite3_file* file) {
  write_kept_head(file);
  return inner(file)->pMethods->xClose(inner(file));
}

int read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  if (const int written = write_kept_head(file); written != SQLITE_OK) return written;
  return inner(file)->pMethods->xRead(inner(file), to, size, at);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int written = write_kept_head(file); written != SQLITE_OK) return written;
  return inner(file)->pMethods->xTruncate(inner(file), size);
}

int sync(sqlite3_file* file, int flags) {
  if (const int written = write_kept_head(file); written != SQLITE_OK) return written;
  return inner(file)->pMethods->xSync(inner(file), flags);
}

int size(sqlite3_file* file, sqlite3_int64* to) {
  if (const int written = write_kept_head(file); written != SQLITE_OK) return written;
  return inner(file)->pMethods->xFileSize(inner(file), to);
}

int lock(sqlite3_file* file, int level) { return inner(file)->pMethods->xLock(inner(file), level); }

int unlock(sqlite3_file* file, int level) {
  return inner(file)->pMethods->xUnlock(inner(file), level);
}

int reserved(sqlite3_file* file, int* to) {
  return inner(file)->pMethods->xCheckReservedLock(inner(file), to);
}

int control(sqlite3_file* file, int what, void* with) {
  return inner(file)->pMethods->xFileControl(inner(file), what, with);
}

int sector_size(sqlite3_file* file) { return inner(file)->pMethods->xSectorSize(inner(file)); }

int characteristics(sqlite3_file* file) {
  return inner(file)->pMethods->xDeviceCharacteristics(inner(file));
}

constexpr sqlite3_io_methods methods = [] {
  sqlite3_io_methods made{};
  made.iVersion = 1;  // a log is neither mapped nor shared memory
  made.xClose = close;
  made.xRead = read;
  made.xWrite = write;
  made.xTruncate = truncate;
  made.xSync = sync;
  made.xFileSize = size;
  made.xLock = lock;
  made.xUnlock = unlock;
  made.xCheckReservedLock = reserved;
  made.xFileControl = control;
  made.xSectorSize = sector_size;
  made.xDeviceCharacteristics = characteristics;
  return made;
}();

struct file_system : sqlite3_vfs {
  sqlite3_vfs* system = nullptr;
  bool known = false;  // to SQLite

  file_system() noexcept : sqlite3_vfs{} {}
  file_system(const file_system&) = delete;
  file_system& operator=(const file_system&) = delete;
  // SQLite may stay in a program that this library is unloaded from.
  ~file_system() {
    if (known) sqlite3_vfs_unregister(this);
  }
};

int open(sqlite3_vfs* self, const char* name, sqlite3_file* file, int flags, int* got) {
  sqlite3_vfs* const system = static_cast<file_system*>(self)->system;
  if ((flags & SQLITE_OPEN_WAL) == 0) {
    const int opened = system->xOpen(system, name, file, flags, got);
    if ((flags & SQLITE_OPEN_MAIN_DB) != 0) read_marks::look_after(file, *system);
    return opened;
  }
  log_file& log = *::new (static_cast<void*>(file)) log_file{};
  const int opened = system->xOpen(system, name, inner(file), flags, got);
  if (inner(file)->pMethods != nullptr) log.base.pMethods = &methods;
  return opened;
}

}  // namespace

const char* vfs() noexcept {
  // SQLite's list of file systems is a property of the process, and what is in it must stay.
  static file_system made;
  static const bool known = [] {
    sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
    // A program that gave SQLite another file system meant it.
    if (system == nullptr || std::strcmp(system->zName, "unix") != 0) return false;
    static_cast<sqlite3_vfs&>(made) = *system;
    made.system = system;
    made.pNext = nullptr;
    made.zName = "holdfast";
    made.szOsFile =
        std::max(static_cast<int>(inner_at) + system->szOsFile, read_marks::size_of_file(*system));
    made.xOpen = open;
    made.known = sqlite3_vfs_register(&made, 0) == SQLITE_OK;
    return made.known;
  }();
  return known ? made.zName : nullptr;
}

}  // namespace holdfast::sqlite::log_files
