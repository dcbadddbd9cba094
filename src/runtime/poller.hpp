// The kernel's side of the event loop: one epoll instance with a wake event (eventfd) and an alarm
// (timerfd on CLOCK_BOOTTIME) in it, and a second wake event that wakes only the engine's thread.
#pragma once

#include "runtime/descriptor.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace holdfast::runtime {

// What the kernel reported. On the stack of every wait, and therefore not initialised.
struct ready_batch {
  static constexpr std::size_t limit = 64;

  std::array<epoll_event, limit> events;
  std::size_t count;
  bool alarm;  // it went off

  [[nodiscard]] std::span<const epoll_event> view() const noexcept {
    return {events.data(), count};
  }
};

inline spi::readiness to_readiness(const epoll_event& event) noexcept {
  return {.readable = (event.events & EPOLLIN) != 0,
          .writable = (event.events & EPOLLOUT) != 0,
          .hung_up = (event.events & (EPOLLERR | EPOLLHUP)) != 0};
}

// Every call may be made by any thread at any time; which of them make sense together is up to the
// event loop. Wake event and alarm are edge-triggered: what one wait() reports, the next does not.
class poller {
 public:
  // Ids below this are the poller's own.
  static constexpr std::uint64_t first_id = 16;

  poller();

  // Throws std::system_error, for instance for a regular file or too many watches.
  void add(int fd, std::uint64_t id, bool readable, bool writable);
  void change(int fd, std::uint64_t id, bool readable, bool writable);
  void remove(int fd) noexcept;

  enum class patience : std::uint8_t { none, unlimited };
  // Waits for descriptors, the wake event or the alarm; fills the batch, in which each descriptor has the
  // id it was added with, and wake event and alarm have ids of the poller's. Signals interrupt it.
  void wait(patience limit, ready_batch& batch) noexcept;
  // The same for the engine's thread, which is also woken by its own wake event: it only means that
  // a call of wait() is worthwhile.
  void wait_as_engine() noexcept;
  // Only the engine's wake event, not the descriptors. No limit: until it is signalled.
  void wait_for_engine_wake(std::optional<duration> limit) noexcept;

  void wake() noexcept;         // wakes the thread in wait()
  void wake_engine() noexcept;  // wakes the engine's thread, now or when it waits next

  // The alarm goes off at this time, and not at the one set before.
  void set_alarm(time_point when) noexcept;

  // In a forked child: closes the descriptors, which does not affect the parent.
  void close() noexcept;

 private:
  void silence_engine() noexcept;

  descriptor epoll_;
  descriptor alarm_;
  descriptor wake_event_;
  descriptor engine_wake_event_;
};

}  // namespace holdfast::runtime
