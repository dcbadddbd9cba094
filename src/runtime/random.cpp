// Draws from getrandom(2).
#include "runtime/random.hpp"

#include "runtime/fork_guard.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstddef>
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

// Handed out from the end; a forked child draws a new block.
struct random_block {
  std::array<std::uint64_t, 64> numbers;
  std::size_t left = 0;
  std::uint64_t drawn_in = 0;  // which fork generation
};

}  // namespace

std::uint64_t random_number() {
  thread_local random_block mine;
  const std::uint64_t here = fork_generation();
  if (mine.left == 0 || mine.drawn_in != here) {
    draw(mine.numbers.data(), sizeof mine.numbers);
    mine.left = mine.numbers.size();
    mine.drawn_in = here;
  }
  // A number that was handed out is not kept.
  return std::exchange(mine.numbers[--mine.left], 0);
}

}  // namespace holdfast::runtime
