// A file descriptor that is closed by its destructor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::runtime {

// Not thread-safe. Empty (-1) or open.
class descriptor {
 public:
  descriptor() noexcept = default;
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return number_; }
  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

// Takes what a system call returned; throws std::system_error if that is -1.
inline descriptor checked(int number, const char* call) {
  if (number < 0) throw std::system_error(errno, std::system_category(), call);
  return descriptor(number);
}

}  // namespace holdfast::runtime
