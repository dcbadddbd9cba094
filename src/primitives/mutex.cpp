#include "core/thread_token.hpp"
#include "primitives/seeker_inside.hpp"

#include <holdfast/mutex.hpp>

#include <algorithm>
#include <utility>

namespace holdfast {

mutex::mutex(const client& client, std::string name, const lock_options& options)
    : seeker_(client, std::move(name), options) {}

mutex::~mutex() {
  if (lease_) unlock();
}

result<holdfast::lease> mutex::acquire(const acquire_options& options, std::stop_token token) {
  return seeker_.acquire(options, std::move(token));
}

acquire_awaitable mutex::async_acquire(const acquire_options& options, std::stop_token token) {
  return seeker_.async_acquire(options, std::move(token));
}

void mutex::async_acquire(const acquire_options& options, std::stop_token token,
                          acquire_callback done) {
  seeker_.async_acquire(options, std::move(token), std::move(done));
}

void mutex::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool mutex::try_lock() { return lock_within(duration{0}); }

bool mutex::lock_within(duration wait) {
  core::gate& gate = *seeker_.in().gate;
  if (gate.held_by(core::thread_token())) {
    throw lock_error(error{errc::would_deadlock, "this thread holds it already"});
  }
  auto granted = seeker_.acquire({.wait = std::max(wait, duration{0})}, {});
  if (!granted) {
    const error& why = granted.error();
    if (why == errc::busy || why == errc::timed_out) return false;
    throw lock_error(why);
  }
  gate.threads().add(core::thread_token());
  lease_ = std::move(*granted);
  return true;
}

void mutex::unlock() noexcept {
  core::gate& gate = *seeker_.in().gate;
  if (!gate.threads().remove(core::thread_token())) {
    // Refusing would hold it for ever: the watchdog would go on renewing.
    gate.threads().remove_any();
    seeker_.in().client->engine->raise(event_kind::foreign_unlock,
                                       {.resource = seeker_.in().resource}, lease_.fence());
  }
  // Emptied before the lock is given back: the next holder of this object writes its own.
  const holdfast::lease last = std::exchange(lease_, holdfast::lease{});
}

}  // namespace holdfast
