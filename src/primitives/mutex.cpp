#include "primitives/std_face.hpp"

#include <holdfast/mutex.hpp>

#include <utility>

namespace holdfast {

mutex::mutex(const client& client, std::string name, const lock_options& options)
    : handle_(client, std::move(name), options) {}

result<mutex> mutex::make(const client& client, std::string name, const lock_options& options) {
  return detail::made([&] { return mutex(client, std::move(name), options); });
}

mutex::mutex(mutex&& other) noexcept : handle_(other.handle_) {
  detail::check_movable(other.leases_.empty(), "mutex");
}

mutex& mutex::operator=(mutex&& other) noexcept {
  detail::check_movable(leases_.empty() && other.leases_.empty(), "mutex");
  handle_ = other.handle_;
  return *this;
}

mutex::~mutex() {
  while (!leases_.empty()) unlock();
}

result<holdfast::lease> mutex::acquire(const acquire_options& options, std::stop_token token) {
  return handle_.acquire(options, std::move(token));
}

acquire_awaitable mutex::async_acquire(const acquire_options& options, std::stop_token token) {
  return handle_.async_acquire(options, std::move(token));
}

void mutex::async_acquire(const acquire_options& options, std::stop_token token,
                          acquire_callback done) {
  handle_.async_acquire(options, std::move(token), std::move(done));
}

void mutex::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool mutex::try_lock() { return lock_within(duration{0}); }

bool mutex::lock_within(duration wait) { return detail::lock_within(handle_, wait, leases_); }

void mutex::unlock() noexcept { detail::unlock(handle_, leases_); }

const holdfast::lease& mutex::lease() const noexcept { return detail::held_here(handle_, leases_); }

}  // namespace holdfast
