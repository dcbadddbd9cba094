// The write-ahead log of the embedded store, whose pages are written by one call instead of two. If a
// test here fails, a process that is killed takes transactions with it that others have seen, or the
// saving is not there.
#include "integration/sqlite_connection.hpp"
#include "stores/sqlite/log_files.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::test {
namespace {

// What somebody finds who comes after all users were killed at this moment: the file and its log, from
// which the log's index is made anew.
class aftermath {
 public:
  explicit aftermath(const fs::path& file) {
    for (const char* suffix : {"", "-wal"}) {
      fs::copy_file(file.string() + suffix, copy().string() + suffix);
    }
  }
  std::string lines() { return found().text(all_lines); }
  std::string integrity() { return found().text("PRAGMA integrity_check"); }

 private:
  fs::path copy() const { return folder_.path() / "copy.db"; }
  connection& found() {
    if (!found_) found_.emplace(copy(), nullptr);
    return *found_;
  }

  const temporary_folder folder_;
  std::optional<connection> found_;
};

std::atomic<int> writes{0};
using write_call = ssize_t (*)(int, const void*, size_t, off_t);
write_call real_write = nullptr;

ssize_t counting_write(int file, const void* data, size_t size, off_t at) {
  ++writes;
  return real_write(file, data, size, at);
}

// Counts SQLite's writes while it lives.
class write_counter {
 public:
  write_counter() {
    for (const char* name : {"pwrite64", "pwrite"}) {
      auto* const call = system_->xGetSystemCall(system_, name);
      if (call == nullptr) continue;
      real_write = reinterpret_cast<write_call>(call);
      name_ = name;
      break;
    }
    set(&counting_write);
  }
  write_counter(const write_counter&) = delete;
  write_counter& operator=(const write_counter&) = delete;
  ~write_counter() { set(real_write); }

  template <class Work>
  int during(Work&& work) {
    const int before = writes;
    work();
    return writes - before;
  }

 private:
  void set(write_call call) {
    system_->xSetSystemCall(system_, name_, reinterpret_cast<sqlite3_syscall_ptr>(call));
  }

  sqlite3_vfs* const system_ = sqlite3_vfs_find("unix");
  const char* name_ = nullptr;
};

class sqlite_log : public ::testing::TestWithParam<int> {
 protected:
  const temporary_folder folder;
  const fs::path file = folder.path() / "log.db";
};

TEST(sqlite_log_calls, take_one_write_for_a_transaction_on_one_page) {
  // Broken: each transaction makes a system call more than it needs.
  const temporary_folder folder;
  connection database(folder.path() / "log.db", sqlite::log_files::vfs());
  database.set_up(1024);
  database.execute("INSERT INTO lines VALUES (1, 'one')");
  write_counter counter;
  EXPECT_EQ(counter.during([&] { database.execute("UPDATE lines SET text = 'two'"); }), 1);
  EXPECT_EQ(counter.during([&] { database.execute("UPDATE lines SET text = 'six'"); }), 1);
}

TEST_P(sqlite_log, is_whole_after_every_transaction) {
  // Broken: a part of a page is kept back when the transaction has ended and others have seen it.
  connection database(file, sqlite::log_files::vfs());
  database.set_up(GetParam());
  for (int i = 1; i <= 20; ++i) {
    database.execute("INSERT INTO lines VALUES (" + std::to_string(i) + ", hex(randomblob(700)))");
    aftermath after(file);
    ASSERT_EQ(after.lines(), database.text(all_lines)) << i;
    ASSERT_EQ(after.integrity(), "ok") << i;
  }
}

TEST_P(sqlite_log, is_whole_after_pages_were_written_twice_in_one_transaction) {
  // Broken: SQLite then writes heads anew, without bodies, and the last of them is kept back.
  connection database(file, sqlite::log_files::vfs());
  database.set_up(GetParam());
  database.execute("PRAGMA cache_size = 3; PRAGMA cache_spill = 3");
  for (int round = 0; round < 5; ++round) {
    database.execute("BEGIN IMMEDIATE");
    for (int i = 0; i < 100; ++i) {
      database.execute("INSERT OR REPLACE INTO lines VALUES (" + std::to_string(i * 37 % 50) +
                       ", hex(randomblob(300)))");
    }
    database.execute("COMMIT");
    aftermath after(file);
    ASSERT_EQ(after.lines(), database.text(all_lines)) << round;
    ASSERT_EQ(after.integrity(), "ok") << round;
  }
}

TEST_P(sqlite_log, is_whole_where_it_begins_anew_and_others_write_too) {
  // Broken: what this process wrote last is taken for the end of a log that another began anew.
  connection ours(file, sqlite::log_files::vfs());
  ours.set_up(GetParam());
  connection theirs(file, nullptr);
  for (int i = 1; i <= 40; ++i) {
    connection& writer = i % 3 == 0 ? theirs : ours;
    writer.execute("INSERT INTO lines VALUES (" + std::to_string(i) + ", hex(randomblob(200)))");
    if (i % 7 == 0) theirs.execute("PRAGMA wal_checkpoint(RESTART)");
    if (i % 11 == 0) ours.execute("PRAGMA wal_checkpoint(TRUNCATE)");
    aftermath after(file);
    ASSERT_EQ(after.lines(), theirs.text(all_lines)) << i;
    ASSERT_EQ(after.integrity(), "ok") << i;
  }
}

INSTANTIATE_TEST_SUITE_P(page_sizes, sqlite_log, ::testing::Values(512, 1024, 4096));

}  // namespace
}  // namespace holdfast::test
