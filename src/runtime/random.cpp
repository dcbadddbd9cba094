// Draws from getrandom(2).
#include "runtime/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace holdfast::runtime {

namespace {

void draw(void* to, std::size_t size) {
  auto* at = static_cast<std::byte*>(to);
  while (size > 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::system_category(), "getrandom");
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

}  // namespace

std::uint64_t random_source::next() {
  if (guard_.forked()) {
    std::uint64_t number = 0;
    draw(&number, sizeof number);
    return number;
  }
  const std::scoped_lock lock(mutex_);
  if (left_ == 0) {
    draw(numbers_.data(), sizeof numbers_);
    left_ = numbers_.size();
  }
  // What was given out is not kept.
  return std::exchange(numbers_[--left_], 0);
}

}  // namespace holdfast::runtime
