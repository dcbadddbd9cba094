// A mutex that the thread which holds it may lock again, counted, without a round trip.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/patience.hpp>
#include <holdfast/detail/seeker.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <string>

namespace holdfast {

// Thread-safe. Counts also through different objects of the same client and name; the fence is that
// of the first entry. Locking again when the lease was lost meanwhile throws lost: every entry is
// still to be left. At most 65,535 entries, then overloaded. Unlocking on a thread that does not
// hold is a bug: an assertion, on in release builds too.
class recursive_mutex {
 public:
  recursive_mutex(const client& client, std::string name, const lock_options& options = {});
  // The same for a name from outside: answers invalid where the constructor throws it.
  [[nodiscard]] static result<recursive_mutex> make(const client& client, std::string name,
                                                    const lock_options& options = {});
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;
  recursive_mutex(recursive_mutex&&) noexcept = default;
  recursive_mutex& operator=(recursive_mutex&&) noexcept = default;
  ~recursive_mutex() = default;  // entries belong to threads, not to this object

  // Lockable and TimedLockable; as mutex's, but for re-entrance.
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

  // Of the hold that this thread has; only between lock() and unlock().
  [[nodiscard]] fence_token fence() const;
  [[nodiscard]] bool valid() const noexcept;
  [[nodiscard]] std::stop_token lost() const;

  [[nodiscard]] const std::string& name() const noexcept { return seeker_.name(); }

 private:
  bool lock_within(duration wait);

  detail::seeker seeker_;
};

}  // namespace holdfast
