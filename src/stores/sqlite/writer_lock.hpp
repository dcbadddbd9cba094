// The writer lock: one process at a time in a write transaction. SQLite's own waiting is a loop of sleeps,
// which starves under load (1.7 s seen among 16 processes); flock() queues in the kernel. It is for
// order only: what keeps two writers apart is SQLite's own lock.
//
// A wait for it has a deadline, because a process may be stopped inside. flock() has none, so:
// 1. some tries in a row: who is inside needs microseconds;
// 2. then a helper thread blocks in flock() and, once inside, does the caller's work there, while
//    the caller waits until its deadline. Not: the helper takes the lock and wakes the caller. Then
//    everybody would wait for the caller to get a processor.
// 3. and who was inside many times in a row while others wanted in gives up the processor once.
// The helper starts at the first need. It is not joined: nothing can wake it from flock() but the
// process that is inside. It owns what it uses and ends after the writer lock is closed.
#pragma once

#include "stores/sqlite/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <sys/types.h>

#include <memory>
#include <string>

namespace holdfast::sqlite {

// Used by one thread of the store at a time (see turn.hpp).
class writer_lock {
 public:
  // Opens or makes the file in the folder.
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
  std::shared_ptr<helper> helper_;  // made at the first need
  int in_a_row_ = 0;                // times inside at once since others were let in
  bool met_others_ = false;         // since then
};

}  // namespace holdfast::sqlite
