#include "primitives/made.hpp"
#include "primitives/std_face.hpp"

#include <holdfast/mutex.hpp>

#include <utility>

namespace holdfast {

mutex::mutex(const client& client, std::string name, const lock_options& options)
    : seeker_(client, std::move(name), options) {}

result<mutex> mutex::make(const client& client, std::string name, const lock_options& options) {
  return detail::made([&] { return mutex(client, std::move(name), options); });
}

mutex::mutex(mutex&& other) noexcept : seeker_(other.seeker_) {
  detail::check_movable(!other.lease_, "mutex");
}

mutex& mutex::operator=(mutex&& other) noexcept {
  detail::check_movable(!lease_ && !other.lease_, "mutex");
  seeker_ = other.seeker_;
  return *this;
}

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
  detail::check_usable(seeker_);
  detail::check_not_held(seeker_);
  auto granted = detail::take(seeker_, wait);
  if (!granted) return false;
  owner_ = core::thread_token();
  seeker_.in().gate->threads().add(owner_);
  lease_ = std::move(*granted);
  return true;
}

void mutex::unlock() noexcept {
  if (!lease_) return;
  if (!detail::forked(seeker_)) {
    seeker_.in().gate->threads().remove(owner_);
    if (owner_ != core::thread_token()) {
      // Refusing would hold it for ever: the watchdog would go on renewing.
      seeker_.in().client->engine->raise(event_kind::foreign_unlock,
                                         {.resource = seeker_.in().resource}, lease_.fence());
    }
  }
  // Emptied before the lock is given back: the next holder of this object writes its own.
  const holdfast::lease last = std::exchange(lease_, holdfast::lease{});
}

}  // namespace holdfast
