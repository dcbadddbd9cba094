// The embedded store writes without setting SQLite's mark of a reader first. If a test here fails, the
// log grows for ever, somebody reads what is not whole, or the saving is not there.
#include "integration/sqlite_connection.hpp"
#include "stores/sqlite/log_files.hpp"
#include "stores/sqlite/read_marks.hpp"
#include "support/forked_process.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace holdfast::test {
namespace {

using sqlite::read_marks::done_without;

std::atomic<int> lock_calls{0};
using lock_call = int (*)(int, int, ...);
lock_call real_lock = nullptr;

int counting_lock(int file, int what, ...) {
  va_list more;
  va_start(more, what);
  void* const with = va_arg(more, void*);
  va_end(more);
  if (what == F_SETLK) ++lock_calls;
  return real_lock(file, what, with);
}

// Counts the locks that SQLite takes or gives back by a system call while it lives.
class lock_counter {
 public:
  lock_counter() {
    real_lock = reinterpret_cast<lock_call>(system_->xGetSystemCall(system_, "fcntl"));
    set(&counting_lock);
  }
  lock_counter(const lock_counter&) = delete;
  lock_counter& operator=(const lock_counter&) = delete;
  ~lock_counter() { set(real_lock); }

  template <class Work>
  int during(Work&& work) {
    const int before = lock_calls;
    work();
    return lock_calls - before;
  }

 private:
  void set(lock_call call) {
    system_->xSetSystemCall(system_, "fcntl", reinterpret_cast<sqlite3_syscall_ptr>(call));
  }

  sqlite3_vfs* const system_ = sqlite3_vfs_find("unix");
};

class sqlite_marks : public ::testing::Test {
 protected:
  sqlite_marks() {
    ours.set_up(1024);
    ours.execute("INSERT INTO lines VALUES (1, 'first')");
  }

  // As the store does it inside the gate.
  void write(const std::string& text) {
    const done_without marks(sqlite::read_marks::find(ours.get()));
    ours.execute("UPDATE lines SET text = '" + text + "'");
  }
  void write(int times) {
    for (int i = 0; i < times; ++i) write(std::to_string(i));
  }
  std::uintmax_t log_size() const { return fs::file_size(file.string() + "-wal"); }

  static constexpr std::uintmax_t page_in_log = 1024 + 24;

  const temporary_folder folder;
  const fs::path file = folder.path() / "marks.db";
  connection ours{file, sqlite::log_files::vfs()};
  connection theirs{file, nullptr};
};

TEST_F(sqlite_marks, are_found_on_files_of_the_store_only) {
  // Broken: memory of a file that knows nothing of this is written to.
  EXPECT_NE(sqlite::read_marks::find(ours.get()), nullptr);
  EXPECT_EQ(sqlite::read_marks::find(theirs.get()), nullptr);
}

TEST_F(sqlite_marks, are_not_set_by_who_does_without) {
  // Broken: each transaction makes two system calls more than it needs.
  write(3);
  lock_counter counter;
  const int less = counter.during([&] { write("without"); });
  const int usual = counter.during([&] { ours.execute("UPDATE lines SET text = 'with'"); });
  EXPECT_EQ(less, 4);  // to read, to write, and both back
  EXPECT_EQ(usual, 6);
}

TEST_F(sqlite_marks, do_not_keep_the_log_from_being_copied_back) {
  // Broken: who copies back is refused the marks too, and the log grows for ever.
  ours.execute("PRAGMA wal_autocheckpoint = 20");
  write(1'000);
  EXPECT_LT(log_size(), 50 * page_in_log);
  EXPECT_EQ(theirs.text(all_lines), "1999");
}

TEST_F(sqlite_marks, of_others_are_heeded) {
  // Broken: what another one still reads is copied over, or the log stays long when it has ended.
  ours.execute("PRAGMA wal_autocheckpoint = 20");
  write(30);
  theirs.execute("BEGIN");
  const std::string seen = theirs.text(all_lines);
  write(100);
  EXPECT_EQ(theirs.text(all_lines), seen);
  theirs.execute("COMMIT");
  const std::uintmax_t longest = log_size();
  write(1'000);
  EXPECT_LE(log_size(), longest + 2 * page_in_log);
  EXPECT_EQ(theirs.text(all_lines), "1999");
}

TEST_F(sqlite_marks, that_are_old_protect_a_reader_too) {
  // Broken: somebody copies back what a reader without a mark of its own still needs from the file.
  write(30);
  {
    const done_without marks(sqlite::read_marks::find(ours.get()));
    ours.execute("BEGIN");
    ASSERT_EQ(ours.text(all_lines), "129");
  }
  for (int i = 0; i < 30; ++i) {
    theirs.execute("UPDATE lines SET text = 'their " + std::to_string(i) + "'");
    theirs.text(i % 2 == 0 ? "PRAGMA wal_checkpoint(PASSIVE)" : "PRAGMA wal_checkpoint(RESTART)");
    ours.execute("PRAGMA shrink_memory");  // so that it is read anew
    ASSERT_EQ(ours.text(all_lines), "129") << i;
  }
  ours.execute("COMMIT");
  EXPECT_EQ(theirs.text("PRAGMA wal_checkpoint(TRUNCATE)"), "0");
  EXPECT_EQ(log_size(), 0U);
  EXPECT_EQ(ours.text(all_lines), "1their 29");
  EXPECT_EQ(ours.text("PRAGMA integrity_check"), "ok");
}

TEST_F(sqlite_marks, are_set_where_none_can_be_used) {
  // Broken: SQLite asks for a mark again and again, ever more slowly, and then fails.
  write(3);
  // As if all were ahead of the log. By another process: to close the file drops SQLite's locks.
  forked_process spoiler([&] {
    constexpr off_t marks_at = 104;  // of SQLite's format, behind the one that is always 0
    std::array<char, 4 * sizeof(std::uint32_t)> unused{};
    unused.fill('\xff');
    const int index = ::open((file.string() + "-shm").c_str(), O_RDWR | O_CLOEXEC);
    if (::pwrite(index, unused.data(), unused.size(), marks_at) !=
        static_cast<ssize_t>(unused.size())) {
      throw std::runtime_error("cannot write");
    }
  });
  ASSERT_EQ(spoiler.wait(), 0);
  lock_counter counter;
  EXPECT_LE(counter.during([&] { write("set"); }), 6);
  EXPECT_EQ(counter.during([&] { write("used"); }), 4);
  EXPECT_EQ(theirs.text(all_lines), "1used");
}

}  // namespace
}  // namespace holdfast::test
