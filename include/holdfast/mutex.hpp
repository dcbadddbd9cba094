// A mutex across threads, processes and hosts.
//
//   holdfast::mutex stock(client, "stock/42", {.ttl = 10s});
//
//   { std::scoped_lock guard(stock);  write(order, stock.lease().fence()); }   // std face: throws
//
//   if (auto lease = stock.acquire({.wait = 1s}, token)) sell(item, lease->lost());  // value face
//   else if (lease.error() == holdfast::errc::timed_out) too_busy();
//
//   auto lease = co_await stock.async_acquire({.wait = 1s});                   // in any coroutine
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/patience.hpp>
#include <holdfast/detail/seeker.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <cstdint>
#include <stop_token>
#include <string>

namespace holdfast {

// Thread-safe. Two faces, one truth: the std face belongs to the thread that locked, the value face
// to the owner of the lease.
//
// Unlike std::mutex, locking again on the thread that holds (through any object of the same client
// and name) is not undefined: it throws would_deadlock. Unlocking on another thread releases, and
// raises the event foreign_unlock; unlocking what is not locked does nothing. A network may fail:
// lock() then throws unavailable. While a call of another thread is inside, the object must stay, but
// for async_acquire, which outlives it.
class mutex {
 public:
  // Throws lock_error(invalid) if the name is not 1 to 512 bytes of UTF-8 without control
  // characters, or an option is out of its limits. Sends nothing.
  mutex(const client& client, std::string name, const lock_options& options = {});
  // The same for a name from outside: answers invalid where the constructor throws it.
  [[nodiscard]] static result<mutex> make(const client& client, std::string name,
                                          const lock_options& options = {});
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  // So that locks can live in a std::vector. Only while the std face of neither is locked or being
  // locked: an assertion, on in release builds too. What was moved from is for destruction and
  // assignment only.
  mutex(mutex&& other) noexcept;
  mutex& operator=(mutex&& other) noexcept;
  ~mutex();  // unlocks if locked by the std face

  // busy (wait was zero), timed_out, cancelled, unavailable, ... Never re-enters: on the thread that
  // holds already it waits like a stranger, and the event self_wait is raised.
  [[nodiscard]] result<holdfast::lease> acquire(const acquire_options& options = {},
                                                std::stop_token token = {});
  // The same, waiting in a coroutine or answered by a callback. Where that goes on is decided by the
  // rule in <holdfast/awaitable.hpp>: by default on the client's own thread, where nothing may block.
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {});
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done);

  // Lockable and TimedLockable. They throw lock_error for everything but "not free in time"; so
  // try_lock() throws when the engine is down, it does not answer false.
  void lock();
  [[nodiscard]] bool try_lock();
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_within(detail::patience_for(wait));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<Clock, Duration>& deadline) {
    return lock_within(detail::patience_until(deadline));
  }
  void unlock() noexcept;

  // The lease of the std face, for its fence and lost(); only between lock() and unlock(), on the
  // thread that locked.
  [[nodiscard]] const holdfast::lease& lease() const noexcept { return lease_; }

  [[nodiscard]] const std::string& name() const noexcept { return seeker_.name(); }

  // For the primitives of this library.
  [[nodiscard]] const detail::seeker& inside() const noexcept { return seeker_; }

 private:
  bool lock_within(duration wait);

  detail::seeker seeker_;
  // Of the std face; written only by who locked.
  holdfast::lease lease_;
  std::uint64_t owner_ = 0;  // the thread
};

}  // namespace holdfast
