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
#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/detail/patience.hpp>
#include <holdfast/detail/thread_leases.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <stop_token>
#include <string>

namespace holdfast {

// Thread-safe. There are two interfaces to the same lock: a hold of the std face (lock, unlock)
// belongs to the thread that locked, a hold of the value face (acquire) to the owner of the lease.
//
// Unlike with std::mutex, it is defined what happens if a thread locks again what it holds, through
// any object of the same client and name: would_deadlock is thrown. Unlocking on another thread
// releases, and raises the event foreign_unlock; unlocking a free mutex does nothing. If the network
// fails, lock() throws unavailable. The object must outlive calls of other threads, except for
// async_acquire.
class mutex {
 public:
  // Throws lock_error(invalid) if the name is not 1 to 512 bytes of UTF-8 without control
  // characters, or an option is out of its limits. Sends nothing.
  mutex(const client& client, std::string name, const lock_options& options = {});
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<mutex> make(const client& client, std::string name,
                                          const lock_options& options = {});
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;
  // Movable, so that locks can be in a std::vector, while the std face of neither object is locked
  // or being locked; otherwise an assertion fails, also in release builds. A moved-from object can
  // only be destroyed or assigned to.
  mutex(mutex&& other) noexcept;
  mutex& operator=(mutex&& other) noexcept;
  ~mutex();  // unlocks what the std face has locked

  // Errors: busy (if wait is zero), timed_out, cancelled, unavailable, ... Not re-entrant: a thread
  // that already holds the lock waits like any other, and the event self_wait is raised.
  [[nodiscard]] result<holdfast::lease> acquire(const acquire_options& options = {},
                                                std::stop_token token = {});
  // The same for a coroutine or a callback. <holdfast/awaitable.hpp> says on which thread they
  // continue: by default on the client's notifier thread, where nothing may block.
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {});
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done);

  // Lockable and TimedLockable. They throw lock_error for every error except "not free in time". So
  // try_lock() throws when the engine is down; it does not return false.
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

  // The lease of the std face, for its fence and lost(): only between lock() and unlock(), on the
  // thread that locked. An empty lease if this thread has not locked.
  [[nodiscard]] const holdfast::lease& lease() const noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }

  // For the primitives of this library.
  [[nodiscard]] const detail::lock_handle& inside() const noexcept { return handle_; }

 private:
  bool lock_within(duration wait);

  detail::lock_handle handle_;
  detail::thread_leases leases_;  // of the std face
};

}  // namespace holdfast
