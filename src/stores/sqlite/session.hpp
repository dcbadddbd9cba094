// The store's only connection to the database, and the path to a transaction: the turn among the
// threads of this store, then the writer lock among processes, then SQLite's own lock, which by
// then only a foreign program can hold.
//
// Thread-safe. Every wait ends at the deadline. One connection is enough: writers wait for each
// other at the writer lock anyway.
#pragma once

#include "stores/sqlite/database.hpp"
#include "stores/sqlite/descriptor.hpp"
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/location.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

namespace holdfast::sqlite {

// A mutex with a deadline. Our own, because ThreadSanitizer reports false
// positives for std::timed_mutex.
//
// Thread-safe.
class turn {
 public:
  bool take(time_point deadline) {
    std::unique_lock lock(mutex_);
    while (taken_) {
      const duration left = deadline - clock::now();
      if (left <= duration{0}) return false;
      ++waiting_;
      given_.wait_for(lock, std::min<duration>(left, std::chrono::hours(1)));  // no sum overflows
      --waiting_;
    }
    taken_ = true;
    return true;
  }

  void give() noexcept {
    bool others = false;
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
      others = waiting_ > 0;
    }
    if (others) given_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  bool taken_ = false;  // guarded by mutex_
  int waiting_ = 0;     // guarded by mutex_
};

// The writer lock: one process at a time in a write transaction. SQLite's own waiting is a loop of
// sleeps, which starves under load (1.7 s seen among 16 processes); flock() queues in the kernel.
// It only provides the order: SQLite's own lock keeps two writers apart.
//
// A wait for it has a deadline, because a process may be stopped inside. flock() has none, so:
// 1. some tries in a row: the process inside needs microseconds;
// 2. then a helper thread blocks in flock() and, once inside, does the caller's work there, while
//    the caller waits until its deadline. It does not just take the lock and wake the caller: then
//    everybody would wait for the caller to get a processor.
// 3. and a process that was inside many times in a row while others wanted to enter yields once.
// The helper starts when it is first needed. It is not joined: nothing can wake it from flock() but
// the process that is inside. It owns what it uses and ends after the writer lock is closed.
//
// Only for the thread that has the turn.
class writer_lock {
 public:
  // Opens or creates the file in the folder.
  static result<writer_lock> open(int folder, const std::string& path, mode_t mode);

  writer_lock(writer_lock&&) noexcept;
  writer_lock& operator=(writer_lock&&) noexcept;
  ~writer_lock();

  // Calls `work` inside, on this thread or on the helper's, and returns when it has returned. It
  // must not throw. False: not inside by the deadline, and not called.
  template <class Work>
  bool inside(time_point deadline, Work&& work) {
    if (enter_at_once()) {
      work();
      leave();
      return true;
    }
    return inside_later(
        deadline, [](void* with) { (*static_cast<std::remove_reference_t<Work>*>(with))(); },
        std::addressof(work));
  }

 private:
  class helper;
  using function = void (*)(void*);

  explicit writer_lock(descriptor file);

  bool enter_at_once() noexcept;
  void leave() noexcept;
  bool inside_later(time_point deadline, function work, void* with);

  std::shared_ptr<const descriptor> file_;
  std::shared_ptr<helper> helper_;  // created when first needed
  int in_a_row_ = 0;                // times inside without waiting since others were let in
  bool met_others_ = false;         // since then
};

class session {
 public:
  static constexpr auto never = [](auto&&...) { return false; };

  // Opens the database, and creates its tables if it is new. name_conflict: not a database, or
  // another program's. unsupported: written by a newer version. denied, unavailable.
  static result<std::unique_ptr<session>> open(const location& at, writer_lock writer_lock,
                                               time_point deadline);

  // `work(ledger&)` in a write transaction: committed if it returns, undone if it throws.
  // Not called if `fast_path(ledger&)` returns that it has done it in one statement,
  // which is its own transaction. An error means that nothing has happened. No pointers
  // into the session may be kept.
  template <class Work, class FastPath = decltype(never)>
  result<void> write(time_point deadline, const Work& work, const FastPath& fast_path = never) {
    if (auto begun = begin(deadline); !begun) return begun;
    result<void> done;
    const bool entered = writer_lock_.inside(deadline, [&]() noexcept {
      done = attempt([&] {
        if (fast_path(ledger_)) return;
        run(statements_.begin);
        work(ledger_);
        run(statements_.commit);
      });
    });
    turn_.give();
    if (!entered) return not_entered();
    return done;
  }
  // In a read transaction: one snapshot, without the writer lock.
  template <class Work>
  result<void> read(time_point deadline, Work&& work) {
    if (auto begun = begin(deadline); !begun) return begun;
    auto done = attempt([&] {
      run(statements_.begin_read);
      work(ledger_);
      run(statements_.commit);
    });
    turn_.give();
    return done;
  }

  // Without a transaction, whether or not the file is still in its place.
  template <class Work>
  result<void> aside(time_point deadline, Work&& work) {
    if (auto begun = take_turn(deadline); !begun) return begun;
    auto done = attempt([&] { work(*database_, statements_); });
    turn_.give();
    return done;
  }

  // Does the path still lead to the opened file? Else: why not. A file that was deleted or replaced
  // shows at once, one that was moved away with its name or its folder after at most `path_age`.
  [[nodiscard]] result<void> in_place() const;
  static constexpr duration path_age = std::chrono::milliseconds(10);

  [[nodiscard]] statements& prepared() noexcept { return statements_; }
  [[nodiscard]] const location& where() const noexcept { return location_; }

  // Blocks set aside for the write-ahead log, so that a lock can be given back on a full disk.
  void reserve_log() noexcept;

 private:
  // The opened file. Opened with O_PATH: closing such a descriptor does not drop SQLite's locks.
  struct opened_file {
    descriptor handle;
    dev_t device = 0;
    ino_t inode = 0;
  };

  session(const location& at, writer_lock writer_lock, std::unique_ptr<database> connection,
          opened_file file);

  template <class Work>
  result<void> attempt(Work&& work) {
    const inside_sqlite inside;
    try {
      work();
      return {};
    } catch (const failed& failure) {
      database_->roll_back();
      return tl::unexpected(failure.why);
    } catch (const std::bad_alloc&) {
      database_->roll_back();
      return failure(errc::unavailable, "sqlite, out of memory");
    }
  }

  result<void> take_turn(time_point deadline);
  result<void> begin(time_point deadline);
  static tl::unexpected<error> not_entered();
  void set_up();
  void share_files() const noexcept;
  // As sqlite3_wal_hook wants it: after a transaction, with the number of pages in the log.
  static int log_has_grown(void* self, sqlite3* database, const char* schema_name, int pages);

  const location location_;
  const opened_file file_;
  mutable std::atomic<time_point> path_seen_{};  // to lead to the file
  turn turn_;
  writer_lock writer_lock_;             // for the thread that has the turn
  std::unique_ptr<database> database_;  // for the thread that has the turn
  statements statements_;               // for the thread that has the turn
  ledger ledger_;                       // for the thread that has the turn
  std::int64_t most_pages_;             // for the thread that has the turn
  std::int64_t checkpoint_at_;          // for the thread that has the turn
};

}  // namespace holdfast::sqlite
