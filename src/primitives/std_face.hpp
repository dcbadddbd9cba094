// What the std faces share: which thread is calling, what it may not do, and what is thrown.
#pragma once

#include "core/local_queue.hpp"
#include "core/thread_holds.hpp"
#include "primitives/lock_handle_inside.hpp"

#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/detail/thread_leases.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace holdfast::detail {

// Moving a locked lock would leave its guard with a lock that no longer exists.
inline void check_movable(bool free, const char* type) noexcept {
  if (free) return;
  std::fprintf(stderr, "holdfast: a %s was moved while it was locked\n", type);
  std::abort();
}

// In a forked child nothing of the parent's may be touched, not even a mutex: a thread that does
// not exist here may have held it.
inline bool forked(const lock_handle& lock_handle) noexcept {
  return lock_handle.in().client->runtime->forked();
}

// Throws cancelled if the client is closed or the process is a fork.
inline void check_usable(const lock_handle& lock_handle) {
  if (auto fine = lock_handle.in().client->usable(); !fine) throw lock_error(fine.error());
}

// Throws would_deadlock if the calling thread holds the name through any object of its client.
inline void check_not_held(const lock_handle& lock_handle) {
  if (!lock_handle.in().local_queue->held_by(core::thread_token())) return;
  throw lock_error(error{errc::would_deadlock, "this thread holds it already"});
}

// None: not free in time. Every other error is thrown.
template <class Lease>
std::optional<Lease> unless_busy(result<Lease> granted) {
  if (granted) return std::move(*granted);
  const error& why = granted.error();
  if (why == errc::busy || why == errc::timed_out) return std::nullopt;
  throw lock_error(why);
}

inline std::optional<lease> take(const lock_handle& lock_handle, duration wait) {
  return unless_busy(lock_handle.acquire({.wait = std::max(wait, duration{0})}, {}));
}

// lock() or lock_shared(): what is granted is kept in `held`. False: not free in time.
inline bool lock_within(const lock_handle& lock_handle, duration wait, thread_leases& held) {
  check_usable(lock_handle);
  check_not_held(lock_handle);
  auto granted = take(lock_handle, wait);
  if (!granted) return false;
  const std::uint64_t thread = core::thread_token();
  lock_handle.in().local_queue->threads().add(thread);
  held.add(thread, std::move(*granted));
  return true;
}

// What the calling thread holds, or else another one: it would be held forever if that were refused,
// as the watchdog goes on renewing. It is released where the answer ends.
inline std::optional<thread_leases::entry> take_back(const lock_handle& lock_handle,
                                                     thread_leases& held) noexcept {
  if (!forked(lock_handle)) return held.take(core::thread_token());
  held.clear();
  return std::nullopt;
}

// The thread `owner` no longer holds it.
inline void leave_thread(const lock_handle& lock_handle, std::uint64_t owner,
                         fence_token fence) noexcept {
  if (forked(lock_handle)) return;
  lock_handle.in().local_queue->threads().remove(owner);
  if (owner == core::thread_token()) return;
  lock_handle.in().client->engine->raise(event_kind::foreign_unlock,
                                         {.resource = lock_handle.in().resource}, fence);
}

inline void unlock(const lock_handle& lock_handle, thread_leases& held) noexcept {
  const auto left = take_back(lock_handle, held);
  if (left) leave_thread(lock_handle, left->thread, left->held.fence());
}

// What the calling thread holds; an empty lease if nothing.
inline const lease& held_here(const lock_handle& lock_handle, const thread_leases& held) noexcept {
  static const lease none;
  return forked(lock_handle) ? none : held.of(core::thread_token());
}

}  // namespace holdfast::detail
