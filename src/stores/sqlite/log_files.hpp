// The file system as SQLite sees it, with two changes: of a page in the write-ahead log SQLite writes
// the head and the body by a call each, and here both go to the file by one, a system call less for
// each transaction; and a database's file knows of read_marks.
#pragma once

namespace holdfast::sqlite::log_files {

// The name under which SQLite knows it, for sqlite3_open_v2(); nullptr, which is SQLite's default,
// where that is not SQLite's own file system or this one could not be made known. For who is inside
// SQLite (see inheritance.hpp).
const char* vfs() noexcept;

}  // namespace holdfast::sqlite::log_files
