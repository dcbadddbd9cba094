// A child that runs a part of the test itself, without exec: forked while the test has no other
// thread. Killed when the object or the test ends.
#pragma once

#include <sys/types.h>

#include <functional>

namespace holdfast::test {

// Not thread-safe.
class forked_process {
 public:
  forked_process() = default;
  // The child ends with status 0 when `part` returns, with 99 when it throws. Throws
  // std::system_error.
  explicit forked_process(const std::function<void()>& part);
  forked_process(forked_process&& other) noexcept;
  forked_process& operator=(forked_process&& other) noexcept;
  forked_process(const forked_process&) = delete;
  forked_process& operator=(const forked_process&) = delete;
  ~forked_process();

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  void signal(int number) const noexcept;
  // Waits until it is stopped by a signal: SIGSTOP takes effect later than kill() returns.
  void stop() noexcept;
  // SIGKILL, and gone when this returns.
  void kill() noexcept;
  // Waits for the end; the exit status, or -1 if a signal ended it.
  int wait() noexcept;

 private:
  pid_t id_ = 0;
};

// For a forked child: its mounts from now on are visible only to it, and end with it. Throws
// std::runtime_error.
void enter_own_mounts();

}  // namespace holdfast::test
