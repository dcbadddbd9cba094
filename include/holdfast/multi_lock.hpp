// Several locks as one, of any mix of clients and engines: all or nothing, one deadline, free of
// deadlock whatever the order (it blocks on one and tries the rest, as std::lock does).
//
//   holdfast::multi_lock both({&from, &to});
//   if (auto leases = both.acquire({.wait = 1s})) transfer(leases->lost());
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/options.hpp>

#include <stop_token>
#include <vector>

namespace holdfast {

// Several leases that live and die together.
class multi_lease {
 public:
  multi_lease() noexcept;
  multi_lease(multi_lease&&) noexcept;
  multi_lease& operator=(multi_lease&&) noexcept;
  ~multi_lease();  // gives all back, in reverse order

  // The first error, if any; all are released, whatever the answers.
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

 private:
  friend class multi_lock;
  struct inside;
  std::unique_ptr<inside> inside_;
};

// Thread-safe as far as its locks are; they must outlive it. The same name of the same client twice
// is invalid (it would wait for itself): thrown when made.
class multi_lock {
 public:
  explicit multi_lock(std::vector<mutex*> locks);

  result<multi_lease> acquire(const acquire_options& options = {}, std::stop_token token = {});

  // Lockable: for std::scoped_lock over groups.
  void lock();
  bool try_lock();
  void unlock() noexcept;

 private:
  std::vector<mutex*> locks_;
  multi_lease held_;  // of the std face; written only by who locked
};

}  // namespace holdfast
