// Several locks as one, of any mix of clients and engines: all or nothing, one deadline, free of
// deadlock whatever the order (it blocks on one and tries the rest, as std::lock does, and pauses for
// a random moment when that failed: on a slow engine it gets through sooner than std::lock).
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
#include <utility>
#include <vector>

namespace holdfast {

// Several leases that live and die together. Movable; as lease, const members may be called from any
// thread while it stays in place. A moved-from or default-made one holds nothing.
class [[nodiscard]] multi_lease {
 public:
  multi_lease() noexcept;
  multi_lease(multi_lease&&) noexcept;
  multi_lease& operator=(multi_lease&&) noexcept;
  ~multi_lease();  // gives all back, in reverse order

  // The first error, if any; all are released, whatever the answers. not_held: nothing to release.
  [[nodiscard]] result<void> release();
  awaitable<void> async_release();
  // All of them.
  [[nodiscard]] bool valid() const noexcept;
  // The earliest.
  [[nodiscard]] time_point valid_until() const noexcept;
  [[nodiscard]] duration valid_for() const noexcept;
  // Fires when one of them is lost: loss of one is loss of all.
  [[nodiscard]] std::stop_token lost() const;
  // In the order in which the locks were given.
  [[nodiscard]] const std::vector<lease>& leases() const noexcept;

  // As lease's: whether there is something to release. valid() says whether the locks are still yours.
  explicit operator bool() const noexcept { return inside_ != nullptr; }

  // For multi_lock.
  explicit multi_lease(std::vector<lease> leases);

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

// A lock, and how a multi_lock takes it. A copy of what it needs: the lock itself may go or move.
class lock_part {
 public:
  lock_part(const mutex& lock) : seeker_(lock.inside()) {}
  lock_part(const shared_mutex& lock) : seeker_(lock.inside()) {}  // writing
  // As above; null: throws lock_error(invalid).
  lock_part(const mutex* lock);
  lock_part(const shared_mutex* lock);

  [[nodiscard]] const detail::seeker& inside() const noexcept { return seeker_; }

 private:
  explicit lock_part(detail::seeker seeker) noexcept : seeker_(std::move(seeker)) {}
  friend lock_part reading(const shared_mutex& lock);
  friend lock_part permits(const semaphore& from, std::uint32_t count);

  detail::seeker seeker_;
};

[[nodiscard]] lock_part reading(const shared_mutex& lock);
// So many, all or nothing, of the max that the semaphore has now.
[[nodiscard]] lock_part permits(const semaphore& from, std::uint32_t count = 1);

// Thread-safe but for its std face, which is one thread's at a time. The same name of the same client
// twice is invalid (it would wait for itself), as is no lock at all: thrown when made. The same name on
// one engine through two clients cannot be told from two locks: that is never granted.
class multi_lock {
 public:
  explicit multi_lock(std::vector<lock_part> parts);
  // Answers invalid where the constructor throws it.
  [[nodiscard]] static result<multi_lock> make(std::vector<lock_part> parts);
  multi_lock(const multi_lock&) = delete;
  multi_lock& operator=(const multi_lock&) = delete;
  // As mutex's: only while the std face of neither is locked.
  multi_lock(multi_lock&& other) noexcept;
  multi_lock& operator=(multi_lock&& other) noexcept;
  ~multi_lock();  // unlocks if locked by the std face

  // As mutex's, with one deadline for all. Never waits longer than 1 s for one lock while it holds
  // another; an engine that does not answer is waited for with nothing held.
  [[nodiscard]] result<multi_lease> acquire(const acquire_options& options = {},
                                            std::stop_token token = {});
  awaitable<multi_lease> async_acquire(const acquire_options& options = {},
                                       std::stop_token token = {});
  void async_acquire(const acquire_options& options, std::stop_token token,
                     move_only_function<void(result<multi_lease>)> done);

  // Lockable: for std::scoped_lock over groups. As mutex's, also where nothing is locked.
  void lock();
  [[nodiscard]] bool try_lock();
  void unlock() noexcept;

  // The leases of the std face; only between lock() and unlock(), on the thread that locked.
  [[nodiscard]] const multi_lease& leases() const noexcept { return held_; }

 private:
  bool lock_within(duration wait);

  std::shared_ptr<const std::vector<lock_part>> parts_;
  // Of the std face; written only by who locked.
  multi_lease held_;
  std::uint64_t owner_ = 0;  // the thread
};

}  // namespace holdfast
