// Which runtimes does this thread work for? A thread that serves a runtime, or runs its tasks while
// it drives, must not block on a lock of it: no other thread would bring the answer.
#pragma once

#include <cstdint>

namespace holdfast::runtime {

// Marks the calling thread as being inside `owner` until its end. Marks nest: a task of one runtime
// may drive another.
class own_thread {
 public:
  enum class role : std::uint8_t { dispatches, runs_user_code };

  // `flag`: what this thread waits for while it drives, or null.
  own_thread(const void* owner, role part, const void* flag = nullptr) noexcept
      : owner_(owner), flag_(flag), outer_(innermost), role_(part) {
    innermost = this;
  }
  ~own_thread() { innermost = outer_; }
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;

  [[nodiscard]] static bool inside(const void* owner) noexcept {
    for (const own_thread* mark = innermost; mark != nullptr; mark = mark->outer_) {
      if (mark->owner_ == owner) return true;
    }
    return false;
  }
  [[nodiscard]] static bool dispatching(const void* owner) noexcept {
    for (const own_thread* mark = innermost; mark != nullptr; mark = mark->outer_) {
      if (mark->owner_ == owner && mark->role_ == role::dispatches) return true;
    }
    return false;
  }
  // The same, and nothing of another runtime within that.
  [[nodiscard]] static bool dispatches(const void* owner) noexcept {
    return innermost != nullptr && innermost->owner_ == owner &&
           innermost->role_ == role::dispatches;
  }
  // Does the calling thread drive the owner until this flag is set?
  [[nodiscard]] static bool drives_for(const void* owner, const void* flag) noexcept {
    return innermost != nullptr && innermost->owner_ == owner && innermost->flag_ == flag;
  }

 private:
  const void* owner_;
  const void* flag_;
  own_thread* outer_;
  role role_;

  static inline thread_local own_thread* innermost = nullptr;
};

}  // namespace holdfast::runtime
