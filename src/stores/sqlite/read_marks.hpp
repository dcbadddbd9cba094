// SQLite's marks of readers. Who begins to read writes into the log's index how far the log goes, so that
// nobody copies more of it back meanwhile. That takes two system calls, and a store that writes sets its
// mark anew for each transaction, since the one before made the log longer.
//
// Where a mark cannot be set SQLite takes the greatest that is there: copying back is then held up
// earlier, which is all that a mark is for. Inside the gate nobody copies back, so a writer there can do
// without: as if all marks were in use by others.
#pragma once

struct sqlite3;
struct sqlite3_file;
struct sqlite3_vfs;

namespace holdfast::sqlite::read_marks {

struct file;

// A file takes so much memory in SQLite's with what is kept here.
int size_of_file(const sqlite3_vfs& system) noexcept;
// For a database's file that `system` has opened just now in as much memory as that.
void look_after(sqlite3_file* opened, const sqlite3_vfs& system) noexcept;
// That of a connection; nullptr where its file is another file system's.
file* find(sqlite3* connection) noexcept;

// What begins to read while this lives does it without a mark of its own. For who has the connection,
// inside the gate. `of` may be nullptr.
class done_without {
 public:
  explicit done_without(file* of) noexcept;
  ~done_without();
  done_without(const done_without&) = delete;
  done_without& operator=(const done_without&) = delete;

 private:
  file* const of_;
};

}  // namespace holdfast::sqlite::read_marks
