// See the header. A lock of a mark that SQLite wants for a moment, to set it, is refused without asking
// the system.
//
// What must hold:
//  1. Whoever copies back or mends the index gets the marks, or the log would grow for ever: who does
//     that has one of the two locks for it first.
//  2. A refusal after which SQLite found no mark that it can use is the last: it begins anew then, and
//     sets one.
#include "stores/sqlite/read_marks.hpp"

#include <sqlite3.h>

#include <cstddef>
#include <new>

namespace holdfast::sqlite::read_marks {

// Behind the system's own, in SQLite's memory.
struct file {
  sqlite3_io_methods methods;  // the system's but for one
  int (*lock)(sqlite3_file*, int, int, int);
  unsigned exclusive;  // locks that are held so, by their number
  bool without;        // marks are done without
  bool refused;        // the mark that was asked for last
  bool in_vain;        // and SQLite has not begun to read since
};

namespace {

// Numbers of the locks, of SQLite's format: 0 is the writer's.
constexpr int copies_back = 1;
constexpr int mends = 2;
constexpr int reads_file_only = 3;  // and has no mark
constexpr int first_mark = 4;
constexpr int last_mark = SQLITE_SHM_NLOCK - 1;
constexpr unsigned upkeep = 1U << copies_back | 1U << mends;

constexpr int take_alone = SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE;
constexpr int take_shared = SQLITE_SHM_LOCK | SQLITE_SHM_SHARED;
constexpr int give_alone = SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE;

constexpr int aligned(int size) noexcept {
  constexpr int step = alignof(std::max_align_t);
  return (size + step - 1) / step * step;
}

file& behind(sqlite3_file* opened) noexcept {
  // The table of methods is the first member.
  return *reinterpret_cast<file*>(const_cast<sqlite3_io_methods*>(opened->pMethods));
}

// SQLite asks for one after the other until it gets one.
bool refuses(file& of, int number) noexcept {
  if (number == first_mark) {
    of.refused = of.without && !of.in_vain && (of.exclusive & upkeep) == 0;
    of.in_vain = of.refused;
  }
  return of.refused;
}

int lock(sqlite3_file* opened, int number, int count, int how) {
  file& of = behind(opened);
  const bool to_set = how == take_alone && count == 1 && number >= first_mark;
  if (to_set && number <= last_mark && refuses(of, number)) return SQLITE_BUSY;
  if (how == take_shared && number >= reads_file_only) of.refused = of.in_vain = false;
  const int answer = of.lock(opened, number, count, how);
  const unsigned concerned = ((1U << count) - 1U) << number;
  if (how == take_alone && answer == SQLITE_OK) of.exclusive |= concerned;
  if (how == give_alone) of.exclusive &= ~concerned;
  return answer;
}

}  // namespace

int size_of_file(const sqlite3_vfs& system) noexcept {
  return aligned(system.szOsFile) + static_cast<int>(sizeof(file));
}

void look_after(sqlite3_file* opened, const sqlite3_vfs& system) noexcept {
  constexpr int with_shared_memory = 2;
  if (opened->pMethods == nullptr || opened->pMethods->iVersion < with_shared_memory) return;
  char* const place = reinterpret_cast<char*>(opened) + aligned(system.szOsFile);
  file& made = *::new (static_cast<void*>(place)) file{};
  made.methods = *opened->pMethods;
  made.lock = made.methods.xShmLock;
  made.methods.xShmLock = lock;
  opened->pMethods = &made.methods;
}

file* find(sqlite3* connection) noexcept {
  sqlite3_file* opened = nullptr;
  sqlite3_file_control(connection, nullptr, SQLITE_FCNTL_FILE_POINTER, &opened);
  if (opened == nullptr || opened->pMethods == nullptr) return nullptr;
  return opened->pMethods->xShmLock == lock ? &behind(opened) : nullptr;
}

done_without::done_without(file* of) noexcept : of_(of) {
  if (of_ != nullptr) of_->without = true;
}

done_without::~done_without() {
  if (of_ != nullptr) of_->without = false;
}

}  // namespace holdfast::sqlite::read_marks
