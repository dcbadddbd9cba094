// Several locks as one, of any mix of clients and engines: all or nothing, one deadline, free of
// deadlock whatever the order (it blocks on one and tries the rest, as std::lock does, and pauses for
// a random moment when that failed: on a slow engine it gets through sooner than std::lock).
//
//   holdfast::multi_lock both({&from, &to});
//   if (auto leases = both.acquire({.wait = 1s})) transfer(leases->lost());
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

namespace holdfast {

// Several leases that live and die together. Movable; as lease, const members may be called from any
// thread while it stays in place. A moved-from or default-made one holds nothing.
class multi_lease {
 public:
  multi_lease() noexcept;
  multi_lease(multi_lease&&) noexcept;
  multi_lease& operator=(multi_lease&&) noexcept;
  ~multi_lease();  // gives all back, in reverse order

  // The first error, if any; all are released, whatever the answers. not_held: nothing to release.
  result<void> release();
  // All of them.
  [[nodiscard]] bool valid() const noexcept;
  // The earliest.
  [[nodiscard]] time_point valid_until() const noexcept;
  [[nodiscard]] duration valid_for() const noexcept;
  // Fires when one of them is lost: loss of one is loss of all.
  [[nodiscard]] std::stop_token lost() const;
  // In the order in which the locks were given.
  [[nodiscard]] const std::vector<lease>& leases() const noexcept;

  explicit operator bool() const noexcept { return inside_ != nullptr; }

  // For multi_lock.
  explicit multi_lease(std::vector<lease> leases);

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

// Thread-safe as far as its locks are; they must outlive it. The same name of the same client twice
// is invalid (it would wait for itself), as is no lock at all: thrown when made. The same name on
// one engine through two clients cannot be told from two locks: that is never granted.
class multi_lock {
 public:
  explicit multi_lock(std::vector<mutex*> locks);
  multi_lock(const multi_lock&) = delete;
  multi_lock& operator=(const multi_lock&) = delete;
  ~multi_lock();  // unlocks if locked by the std face

  // As mutex's, with one deadline for all. Never waits longer than 1 s for one lock while it holds
  // another; an engine that does not answer is waited for with nothing held.
  result<multi_lease> acquire(const acquire_options& options = {}, std::stop_token token = {});

  // Lockable: for std::scoped_lock over groups. As mutex's, also where nothing is locked.
  void lock();
  bool try_lock();
  void unlock() noexcept;

  // The leases of the std face; only between lock() and unlock(), on the thread that locked.
  [[nodiscard]] const multi_lease& leases() const noexcept { return held_; }

 private:
  bool lock_within(duration wait);
  // `first` is waited for, the others are tried. Where that fails, `first` becomes the one that was
  // in the way, and `tried` says how long the tries took.
  result<multi_lease> round(std::size_t& first, duration wait, duration& tried,
                            const std::stop_token& token);

  std::vector<mutex*> locks_;
  std::vector<std::size_t> order_;  // in which they are taken: by name, the same everywhere
  // Of the std face; written only by who locked.
  multi_lease held_;
  std::uint64_t owner_ = 0;  // the thread
};

}  // namespace holdfast
