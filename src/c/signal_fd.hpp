// An eventfd that is readable while something is there.
#pragma once

#include <holdfast/result.hpp>

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace holdfast::c {

class signal_fd {
 public:
  // Throws lock_error(overloaded) if no descriptor is left.
  signal_fd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ >= 0) return;
    throw lock_error(
        error{errc::overloaded, "no descriptor: " + std::generic_category().message(errno)});
  }
  signal_fd(const signal_fd&) = delete;
  signal_fd& operator=(const signal_fd&) = delete;
  ~signal_fd() { ::close(fd_); }

  void set() const noexcept { ::eventfd_write(fd_, 1); }
  void clear() const noexcept {
    eventfd_t count = 0;
    ::eventfd_read(fd_, &count);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

}  // namespace holdfast::c
