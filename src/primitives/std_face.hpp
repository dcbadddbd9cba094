// What the std faces share: which thread asks, what it may not ask for, and what is thrown.
#pragma once

#include "core/local_queue.hpp"
#include "core/thread_token.hpp"
#include "primitives/lock_handle_inside.hpp"

#include <holdfast/detail/lock_handle.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace holdfast::detail {

// In a forked child nothing of the parent's may be touched, not even a mutex: some thread that is
// not here may have held it.
inline bool forked(const lock_handle& lock_handle) noexcept {
  return lock_handle.in().client->runtime->forked();
}

// Throws cancelled where the client is closed or the process is a fork.
inline void check_usable(const lock_handle& lock_handle) {
  if (!lock_handle.in().client->engine->inert()) return;
  throw lock_error(
      error{errc::cancelled,
            "the client is closed, or this process was forked from the one that opened it"});
}

// Throws would_deadlock where the calling thread holds the name through any object of its client.
inline void check_not_held(const lock_handle& lock_handle) {
  if (!lock_handle.in().local_queue->held_by(core::thread_token())) return;
  throw lock_error(error{errc::would_deadlock, "this thread holds it already"});
}

// None: not free in time. Everything else that is no grant is thrown.
inline std::optional<lease> take(const lock_handle& lock_handle, duration wait) {
  auto granted = lock_handle.acquire({.wait = std::max(wait, duration{0})}, {});
  if (granted) return std::move(*granted);
  const error& why = granted.error();
  if (why == errc::busy || why == errc::timed_out) return std::nullopt;
  throw lock_error(why);
}

}  // namespace holdfast::detail
