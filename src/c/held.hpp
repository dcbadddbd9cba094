// What one or several leases of the C interface refer to: a lock that is held, the locks of a multi-lock, or
// a recursive lock with its entries.
#pragma once

#include "c/answers.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>

#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

namespace holdfast::c {

// An eventfd that is readable while something is there.
class signal_fd {
 public:
  // Throws lock_error(overloaded) if no descriptor is left.
  signal_fd() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (get() < 0) {
      mistake(errc::overloaded, "no descriptor: " + std::generic_category().message(errno));
    }
  }

  void set() const noexcept { ::eventfd_write(get(), 1); }
  void clear() const noexcept {
    eventfd_t count = 0;
    ::eventfd_read(get(), &count);
  }
  [[nodiscard]] int get() const noexcept { return fd_.get(); }

 private:
  runtime::descriptor fd_;
};

class reentries;

[[noreturn]] inline void released_before() { mistake(errc::not_held, "the lease was released"); }

// Who holds a recursive lock.
struct entry_key {
  std::string name;
  bool is_thread = false;  // else the number is the caller's own
  std::uint64_t owner = 0;

  friend auto operator<=>(const entry_key&, const entry_key&) = default;
};

// Thread-safe: unlike a C++ lease it may be queried while another thread releases it.
class held {
 public:
  using hold = std::variant<lease, multi_lease>;

  explicit held(hold taken) : hold_(std::move(taken)) {}
  held(hold taken, std::shared_ptr<reentries> among, entry_key key)
      : hold_(std::move(taken)), among_(std::move(among)), key_(std::move(key)) {}

  template <class With>
  auto with(With&& use) {
    const std::lock_guard lock(mutex_);
    return std::forward<With>(use)(hold_);
  }

  // One more lease refers to it; false: it was released.
  bool enter();
  // One less; the last gets the hold, to release it.
  std::optional<hold> leave();

  [[nodiscard]] bool valid();
  // Whether it is of a recursive lock: other leases of its owner may refer to it.
  [[nodiscard]] bool recursive() const noexcept { return among_ != nullptr; }
  // Null: there is no such lease in it.
  static const lease* part(const hold& of, std::size_t index);
  static std::size_t count(const hold& of);

  // A string that lives as long as this; call it within with().
  hf_text keep(std::string text);
  int lost_fd();  // throws if it was released

 private:
  struct notify {
    std::shared_ptr<const signal_fd> fd;
    void operator()() const noexcept { fd->set(); }
  };

  std::mutex mutex_;
  hold hold_;                     // guarded by mutex_
  std::uint32_t entries_ = 1;     // guarded by mutex_
  std::deque<std::string> kept_;  // guarded by mutex_; a deque does not move them
  // Of a multi-lock, whose parts have a descriptor each; guarded by mutex_.
  std::shared_ptr<const signal_fd> any_lost_;
  std::optional<std::stop_callback<notify>> on_lost_;
  // Of a recursive lock.
  const std::shared_ptr<reentries> among_;
  const entry_key key_;
};

// The recursive locks of a client that are held. Thread-safe.
class reentries {
 public:
  // Null: not held by this owner. lost: it is, but the lease has ended.
  result<std::shared_ptr<held>> enter(const entry_key& key);
  void begin(const entry_key& key, const std::shared_ptr<held>& taken);
  void end(const entry_key& key, const held& released);

 private:
  std::mutex mutex_;
  std::map<entry_key, std::weak_ptr<held>> held_;  // guarded by mutex_
};

}  // namespace holdfast::c

struct hf_lease {
  explicit hf_lease(std::shared_ptr<holdfast::c::held> of) : inside(std::move(of)) {}
  hf_lease(const hf_lease&) = delete;
  hf_lease& operator=(const hf_lease&) = delete;
  ~hf_lease() {
    if (!made_in.left()) static_cast<void>(leave());
  }

  // Returns the hold if this was its last lease: destroying it releases the lock.
  std::optional<holdfast::c::held::hold> leave() {
    return released.exchange(true) ? std::nullopt : inside->leave();
  }
  [[nodiscard]] bool usable() const noexcept { return !released && !made_in.left(); }

  const holdfast::c::home made_in{};
  const std::shared_ptr<holdfast::c::held> inside;
  std::atomic<bool> released{false};
};

namespace holdfast::c {

// Throws, too, if it was released.
inline hf_lease& use_lease(hf_lease* lease) {
  if (use(lease, "lease").released) released_before();
  return *lease;
}

}  // namespace holdfast::c
