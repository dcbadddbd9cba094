// Many readers or one writer, across threads, processes and hosts.
//
//   holdfast::shared_mutex price(client, "price/42");
//   { std::shared_lock reading(price); ... }
//   { std::unique_lock writing(price); ... }
//
// Nobody starves: a reader that arrives while a writer waits queues behind it, and when a writer
// releases, all readers up to the next writer are granted.
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

// Thread-safe. Not re-entrant in any combination: a thread that holds through the std face and locks
// again, for reading or writing, gets would_deadlock. Unlocking a free lock does nothing.
class shared_mutex {
 public:
  shared_mutex(const client& client, std::string name, const lock_options& options = {});
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<shared_mutex> make(const client& client, std::string name,
                                                 const lock_options& options = {});
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;
  // Movable while the std face of neither object is in use, as mutex.
  shared_mutex(shared_mutex&& other) noexcept;
  shared_mutex& operator=(shared_mutex&& other) noexcept;
  ~shared_mutex();  // releases what the std face still holds

  // For writing.
  [[nodiscard]] result<holdfast::lease> acquire(const acquire_options& options = {},
                                                std::stop_token token = {});
  acquire_awaitable async_acquire(const acquire_options& options = {}, std::stop_token token = {});
  void async_acquire(const acquire_options& options, std::stop_token token, acquire_callback done);
  // For reading.
  [[nodiscard]] result<holdfast::lease> acquire_shared(const acquire_options& options = {},
                                                       std::stop_token token = {});
  acquire_awaitable async_acquire_shared(const acquire_options& options = {},
                                         std::stop_token token = {});
  void async_acquire_shared(const acquire_options& options, std::stop_token token,
                            acquire_callback done);

  // From reader to writer without releasing. Succeeds only for the sole reader with no other upgrade
  // pending; otherwise would_deadlock at once, and the lease stays as it was. The fence changes.
  // lost: the lease has ended; not_held: it is not a lease of this lock.
  [[nodiscard]] result<void> try_upgrade(holdfast::lease& reader);
  awaitable<void> async_try_upgrade(holdfast::lease& reader);
  // From writer to reader without releasing: waiting readers are granted, no writer gets in between.
  // The fence changes. Errors as above. After unavailable the lease may be either; ask again to know.
  // From then on try_upgrade returns unavailable, because the lost downgrade might still arrive.
  [[nodiscard]] result<void> downgrade(holdfast::lease& writer);
  awaitable<void> async_downgrade(holdfast::lease& writer);

  // SharedTimedLockable; errors as for mutex.
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

  void lock_shared();
  [[nodiscard]] bool try_lock_shared();
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& wait) {
    return lock_shared_within(detail::patience_for(wait));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_shared_until(
      const std::chrono::time_point<Clock, Duration>& deadline) {
    return lock_shared_within(detail::patience_until(deadline));
  }
  // Releases the caller's own read lock, or else any other: they are interchangeable, so that a
  // std::shared_lock may be moved between threads. Does nothing if this object has no reader.
  void unlock_shared() noexcept;

  // The writer's lease of the std face: only between lock() and unlock(), on the thread that locked.
  // An empty lease if this thread has not locked.
  [[nodiscard]] const holdfast::lease& lease() const noexcept;
  // The reader's lease likewise, between lock_shared() and unlock_shared().
  [[nodiscard]] const holdfast::lease& shared_lease() const noexcept;

  [[nodiscard]] const std::string& name() const noexcept { return writer_.name(); }

  // For the primitives of this library.
  [[nodiscard]] const detail::lock_handle& inside() const noexcept { return writer_; }
  [[nodiscard]] const detail::lock_handle& inside_shared() const noexcept { return reader_; }

 private:
  bool lock_within(duration wait);
  bool lock_shared_within(duration wait);

  detail::lock_handle writer_;
  detail::lock_handle reader_;
  detail::thread_leases writers_;  // of the std face
  detail::thread_leases readers_;  // of the std face
};

}  // namespace holdfast
