// Several locks as one, of any mix of clients and engines: all or nothing, with one deadline. No
// order of the locks can deadlock. Like std::lock it blocks on one and tries the rest. After a
// failure it pauses for a random time, so on a slow engine it succeeds sooner than std::lock.
//
//   holdfast::multi_lock both({from, to});
//   if (auto leases = both.acquire({.wait = 1s})) transfer(leases->lost());
//
//   holdfast::multi_lock order({stock, holdfast::reading(price), holdfast::permits(partner, 2)});
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

namespace holdfast {

// Several leases that belong together. Movable, not copyable. As with lease, const members may be
// called from any thread while it is not moved. A moved-from or default-constructed one holds nothing.
class [[nodiscard]] multi_lease {
 public:
  multi_lease() noexcept;
  multi_lease(multi_lease&&) noexcept;
  multi_lease& operator=(multi_lease&&) noexcept;
  ~multi_lease();  // releases all, in reverse order

  // Releases all, whatever the answers, and returns the first error. not_held: nothing to release.
  [[nodiscard]] result<void> release();
  awaitable<void> async_release();
  // Whether all of them are valid.
  [[nodiscard]] bool valid() const noexcept;
  // Of the lease whose validity ends first.
  [[nodiscard]] time_point valid_until() const noexcept;
  [[nodiscard]] duration valid_for() const noexcept;
  // Fires when one of them is lost: the loss of one is the loss of all.
  [[nodiscard]] std::stop_token lost() const;
  // In the order in which the locks were given.
  [[nodiscard]] const std::vector<lease>& leases() const noexcept;

  // Whether there is something to release; valid() says whether the locks are still yours.
  explicit operator bool() const noexcept { return inside_ != nullptr; }

  // For multi_lock.
  explicit multi_lease(std::vector<lease> leases);

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

// A lock and how a multi_lock takes it. A copy: the lock itself may be moved or destroyed.
class lock_part {
 public:
  lock_part(const mutex& lock) : handle_(lock.inside()) {}
  lock_part(const shared_mutex& lock) : handle_(lock.inside()) {}  // writing
  // The same for pointers; null throws lock_error(invalid).
  lock_part(const mutex* lock);
  lock_part(const shared_mutex* lock);

  [[nodiscard]] const detail::lock_handle& inside() const noexcept { return handle_; }

 private:
  explicit lock_part(const detail::lock_handle& handle) noexcept : handle_(handle) {}
  friend lock_part reading(const shared_mutex& lock);
  friend lock_part permits(const semaphore& from, std::uint32_t count);

  detail::lock_handle handle_;
};

[[nodiscard]] lock_part reading(const shared_mutex& lock);
// `count` permits, all or nothing, of the max that the semaphore has now.
[[nodiscard]] lock_part permits(const semaphore& from, std::uint32_t count = 1);

// Thread-safe, except that only one thread at a time may use its std face. The constructor throws
// invalid for the same name of the same client twice (it would wait for itself) and for no lock at all.
// The same name on one engine through two clients cannot be detected, and is never granted.
class multi_lock {
 public:
  explicit multi_lock(std::vector<lock_part> parts);
  // As the constructor, but returns errc::invalid instead of throwing.
  [[nodiscard]] static result<multi_lock> make(std::vector<lock_part> parts);
  multi_lock(const multi_lock&) = delete;
  multi_lock& operator=(const multi_lock&) = delete;
  // Only while the std face of neither object is locked, as for mutex.
  multi_lock(multi_lock&& other) noexcept;
  multi_lock& operator=(multi_lock&& other) noexcept;
  ~multi_lock();  // unlocks what the std face has locked

  // As mutex::acquire, with one deadline for all locks. Never waits longer than 1 s for one lock while
  // it holds another; it holds nothing while it waits for an engine that does not answer.
  [[nodiscard]] result<multi_lease> acquire(const acquire_options& options = {},
                                            std::stop_token token = {});
  awaitable<multi_lease> async_acquire(const acquire_options& options = {},
                                       std::stop_token token = {});
  void async_acquire(const acquire_options& options, std::stop_token token,
                     move_only_function<void(result<multi_lease>)> done);

  // Lockable, for std::scoped_lock over several groups. As for mutex, also if nothing is locked.
  void lock();
  [[nodiscard]] bool try_lock();
  void unlock() noexcept;

  // The leases of the std face; only between lock() and unlock(), on the thread that locked.
  [[nodiscard]] const multi_lease& leases() const noexcept { return held_; }

 private:
  bool lock_within(duration wait);

  std::shared_ptr<const std::vector<lock_part>> parts_;
  // Of the std face; written only by the thread that locked.
  multi_lease held_;
  std::uint64_t owner_ = 0;  // the thread
};

}  // namespace holdfast
