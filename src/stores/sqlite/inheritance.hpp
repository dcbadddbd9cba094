// SQLite across fork(). It keeps a list of the files that this process has open and of its locks on
// them. A child inherits the list but not the locks, and would believe itself protected: a stranger
// then takes itself for the last user of a database and deletes the log under the child's hands.
// So the child closes what it inherited before it opens anything of its own, and for that to be
// possible fork() waits until no thread is inside SQLite.
#pragma once

#include <holdfast/result.hpp>

namespace holdfast::sqlite {

// Around every use of SQLite. Keeps fork() out; nests. A thread that comes while another forks waits
// for it.
class inside_sqlite {
 public:
  inside_sqlite() noexcept;
  ~inside_sqlite();
  inside_sqlite(const inside_sqlite&) = delete;
  inside_sqlite& operator=(const inside_sqlite&) = delete;
};

// The steps of fork(), for descriptor.cpp, which registers all of this store's.
struct inheritance {
  static void before_fork() noexcept;
  static void after_fork_in_parent() noexcept;
  static void after_fork_in_child() noexcept;

  // unavailable: fork() did not wait any longer for a thread that was inside SQLite, so that its
  // state in this process is not to be trusted.
  static result<void> check();
};

}  // namespace holdfast::sqlite
