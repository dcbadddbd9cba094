// A mutex that its holding thread may lock again. Re-entry is counted and costs no round trip.
#pragma once

#include <holdfast/client.hpp>
#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/detail/patience.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/options.hpp>

#include <string>

namespace holdfast {

// Thread-safe. Re-entry also works through different objects of the same client and name. The fence is
// that of the first entry. If the lease was lost in the meantime, locking again throws lost; every
// earlier entry must still be unlocked. At most 65,535 entries, then overloaded. Unlocking on a thread
// that does not hold is a bug: an assertion fails, also in release builds.
class recursive_mutex {
 public:
  recursive_mutex(const client& client, std::string name, const lock_options& options = {});
  // As the constructor, but returns errc::invalid instead of throwing: for names from user input.
  [[nodiscard]] static result<recursive_mutex> make(const client& client, std::string name,
                                                    const lock_options& options = {});
  recursive_mutex(const recursive_mutex&) = delete;
  recursive_mutex& operator=(const recursive_mutex&) = delete;
  recursive_mutex(recursive_mutex&&) noexcept = default;
  recursive_mutex& operator=(recursive_mutex&&) noexcept = default;
  ~recursive_mutex() = default;  // entries belong to threads, not to this object

  // Lockable and TimedLockable, as for mutex, except for re-entry.
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

  // Of the hold of this thread: only between lock() and unlock().
  [[nodiscard]] fence_token fence() const;
  [[nodiscard]] bool valid() const noexcept;
  [[nodiscard]] std::stop_token lost() const;

  [[nodiscard]] const std::string& name() const noexcept { return handle_.name(); }

 private:
  bool lock_within(duration wait);

  detail::lock_handle handle_;
};

}  // namespace holdfast
