// A file descriptor that is closed with its owner.
#pragma once

#include <holdfast/clock.hpp>

#include <unistd.h>

#include <utility>

namespace holdfast::cli {

class descriptor {
 public:
  descriptor() noexcept = default;
  explicit descriptor(int number) noexcept : number_(number) {}
  descriptor(descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    if (this != &other) {
      close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  void close() noexcept {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

// A timer on CLOCK_BOOTTIME, which goes on counting while the machine is suspended: a time-out of
// poll() would be late by the suspend.
//
// Not thread-safe.
class alarm_clock {
 public:
  alarm_clock();

  // Readable from then on; time_point::max(): never.
  void set(time_point when) noexcept;
  [[nodiscard]] int get() const noexcept { return file_.get(); }

 private:
  descriptor file_;
};

}  // namespace holdfast::cli
