#include "core/hold.hpp"
#include "primitives/operation.hpp"
#include "primitives/std_face.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/shared_mutex.hpp>

#include <utility>

namespace holdfast {

namespace {

detail::verb<void> changing_mode(const detail::lock_handle& lock_handle, const lease& held,
                                 lock_mode to) {
  return [lock_handle, hold = held.inside(), to](spi::completion<void> done) {
    const detail::lock_handle::inside& in = lock_handle.in();
    auto answer = in.client->telling(
        std::move(done), to == lock_mode::exclusive ? "upgrade" : "downgrade", in.resource.name);
    if (!hold || hold->claim().resource != in.resource || hold->runtime() != in.client->runtime) {
      return answer(failure(errc::not_held, "this lease holds nothing of this lock"));
    }
    const capabilities& caps = in.client->engine->store().caps();
    if (!caps.supports_mode_change) {
      return answer(failure(errc::unsupported, caps.engine + " has no up- and downgrade"));
    }
    hold->change(to, std::move(answer));
  };
}

result<void> change_now(const detail::lock_handle& lock_handle, const lease& held, lock_mode to) {
  return detail::call_now<void>(*lock_handle.in().client->engine,
                                changing_mode(lock_handle, held, to));
}

awaitable<void> change_soon(const detail::lock_handle& lock_handle, const lease& held,
                            lock_mode to) {
  return detail::call_soon<void>(lock_handle.in().client->engine,
                                 changing_mode(lock_handle, held, to));
}

}  // namespace

shared_mutex::shared_mutex(const client& client, std::string name, const lock_options& options)
    : writer_(client, name, options, {.role = spi::role::writer}),
      reader_(client, std::move(name), options, {.mode = spi::mode::shared}) {}

result<shared_mutex> shared_mutex::make(const client& client, std::string name,
                                        const lock_options& options) {
  return detail::made([&] { return shared_mutex(client, std::move(name), options); });
}

shared_mutex::shared_mutex(shared_mutex&& other) noexcept
    : writer_(other.writer_), reader_(other.reader_) {
  detail::check_movable(other.writers_.empty() && other.readers_.empty(), "shared_mutex");
}

shared_mutex& shared_mutex::operator=(shared_mutex&& other) noexcept {
  detail::check_movable(writers_.empty() && readers_.empty(), "shared_mutex");
  detail::check_movable(other.writers_.empty() && other.readers_.empty(), "shared_mutex");
  writer_ = other.writer_;
  reader_ = other.reader_;
  return *this;
}

const holdfast::lease& shared_mutex::lease() const noexcept {
  return detail::held_here(writer_, writers_);
}

const holdfast::lease& shared_mutex::shared_lease() const noexcept {
  return detail::held_here(reader_, readers_);
}

shared_mutex::~shared_mutex() {
  while (!writers_.empty()) unlock();
  while (!readers_.empty()) unlock_shared();
}

result<holdfast::lease> shared_mutex::acquire(const acquire_options& options,
                                              std::stop_token token) {
  return writer_.acquire(options, std::move(token));
}

acquire_awaitable shared_mutex::async_acquire(const acquire_options& options,
                                              std::stop_token token) {
  return writer_.async_acquire(options, std::move(token));
}

void shared_mutex::async_acquire(const acquire_options& options, std::stop_token token,
                                 acquire_callback done) {
  writer_.async_acquire(options, std::move(token), std::move(done));
}

result<holdfast::lease> shared_mutex::acquire_shared(const acquire_options& options,
                                                     std::stop_token token) {
  return reader_.acquire(options, std::move(token));
}

acquire_awaitable shared_mutex::async_acquire_shared(const acquire_options& options,
                                                     std::stop_token token) {
  return reader_.async_acquire(options, std::move(token));
}

void shared_mutex::async_acquire_shared(const acquire_options& options, std::stop_token token,
                                        acquire_callback done) {
  reader_.async_acquire(options, std::move(token), std::move(done));
}

result<void> shared_mutex::try_upgrade(holdfast::lease& reader) {
  return change_now(writer_, reader, lock_mode::exclusive);
}

awaitable<void> shared_mutex::async_try_upgrade(holdfast::lease& reader) {
  return change_soon(writer_, reader, lock_mode::exclusive);
}

result<void> shared_mutex::downgrade(holdfast::lease& writer) {
  return change_now(writer_, writer, lock_mode::shared);
}

awaitable<void> shared_mutex::async_downgrade(holdfast::lease& writer) {
  return change_soon(writer_, writer, lock_mode::shared);
}

void shared_mutex::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool shared_mutex::try_lock() { return lock_within(duration{0}); }

bool shared_mutex::lock_within(duration wait) {
  return detail::lock_within(writer_, wait, writers_);
}

void shared_mutex::unlock() noexcept { detail::unlock(writer_, writers_); }

void shared_mutex::lock_shared() {
  if (!lock_shared_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool shared_mutex::try_lock_shared() { return lock_shared_within(duration{0}); }

bool shared_mutex::lock_shared_within(duration wait) {
  return detail::lock_within(reader_, wait, readers_);
}

void shared_mutex::unlock_shared() noexcept {
  const auto left = detail::take_back(reader_, readers_);
  if (left) reader_.in().local_queue->threads().remove(left->thread);
}

}  // namespace holdfast
