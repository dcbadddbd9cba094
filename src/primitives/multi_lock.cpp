#include "primitives/made.hpp"
#include "primitives/multi_acquisition.hpp"
#include "primitives/operation.hpp"
#include "primitives/std_face.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/multi_lock.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast {

namespace {

template <class Lock>
const Lock& there(const Lock* lock) {
  if (lock == nullptr) throw lock_error(error{errc::invalid, "a lock of a multi-lock is null"});
  return *lock;
}

void check_distinct(const std::vector<lock_part>& parts) {
  const auto refuse = [](const char* why) { throw lock_error(error{errc::invalid, why}); };
  if (parts.empty()) refuse("a multi-lock needs at least one lock");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = parts[i].inside().in().client == parts[j].inside().in().client &&
                        parts[i].inside().name() == parts[j].inside().name();
      if (same) refuse("a multi-lock lists the same lock twice");
    }
  }
}

class multi_operation final : public detail::client_operation<multi_lease> {
 public:
  multi_operation(const std::shared_ptr<core::engine>& engine,
                  std::shared_ptr<multi_acquisition> acquisition, std::stop_token token)
      : client_operation<multi_lease>(engine),
        acquisition_(std::move(acquisition)),
        token_(std::move(token)) {}

  void cancel() noexcept override { acquisition_->cancel(); }

 private:
  struct cancel_on_stop {
    std::weak_ptr<multi_acquisition> acquisition;
    void operator()() const noexcept {
      if (const auto alive = acquisition.lock()) alive->cancel();
    }
  };

  void begin() override {
    const auto self = std::static_pointer_cast<multi_operation>(shared_from_this());
    if (token_.stop_requested()) acquisition_->cancel();
    acquisition_->start([self](result<multi_lease> answer) { self->arrived(std::move(answer)); });
    if (token_.stop_possible()) on_stop_.emplace(token_, cancel_on_stop{acquisition_});
  }

  const std::shared_ptr<multi_acquisition> acquisition_;
  std::stop_token token_;
  std::optional<std::stop_callback<cancel_on_stop>> on_stop_;  // touched by begin() only
};

// A permit belongs to no thread: its holder may take another.
bool owned(const lock_part& part) { return part.inside().in().terms.mode != lock_mode::permit; }

}  // namespace

lock_part::lock_part(const mutex* lock) : lock_part(there(lock)) {}
lock_part::lock_part(const shared_mutex* lock) : lock_part(there(lock)) {}
lock_part reading(const shared_mutex& lock) { return lock_part(lock.inside_shared()); }
lock_part permits(const semaphore& from, std::uint32_t count) {
  return lock_part(from.inside(count));
}

multi_lock::multi_lock(std::vector<lock_part> parts) {
  check_distinct(parts);
  parts_ = std::make_shared<const std::vector<lock_part>>(std::move(parts));
}

result<multi_lock> multi_lock::make(std::vector<lock_part> parts) {
  return detail::made([&] { return multi_lock(std::move(parts)); });
}

// Copies, and so leaves a multi_lock that can still be used, as a mutex does.
multi_lock::multi_lock(multi_lock&& other) noexcept {
  detail::check_movable(!other.held_, "multi_lock");
  parts_ = other.parts_;
}

multi_lock& multi_lock::operator=(multi_lock&& other) noexcept {
  detail::check_movable(!held_ && !other.held_, "multi_lock");
  parts_ = other.parts_;
  return *this;
}

multi_lock::~multi_lock() {
  if (held_) unlock();
}

result<multi_lease> multi_lock::acquire(const acquire_options& options, std::stop_token token) {
  for (const lock_part& each : *parts_) {
    if (each.inside().in().client->runtime->on_own_thread()) {
      return failure(errc::would_deadlock, "a blocking call on the client's own thread");
    }
  }
  if (token.stop_requested()) return failure(errc::cancelled, "stopped before it began");
  const auto acquisition =
      std::make_shared<multi_acquisition>(parts_, options, core::thread_token());
  auto meeting =
      std::make_shared<rendezvous<multi_lease>>(parts_->front().inside().in().client->runtime);
  acquisition->start([meeting](result<multi_lease> answer) { meeting->arrive(std::move(answer)); });
  const std::stop_callback on_stop(std::move(token), [&acquisition] { acquisition->cancel(); });
  return meeting->wait();
}

awaitable<multi_lease> multi_lock::async_acquire(const acquire_options& options,
                                                 std::stop_token token) {
  return awaitable<multi_lease>(std::make_shared<multi_operation>(
      parts_->front().inside().in().client->engine,
      std::make_shared<multi_acquisition>(parts_, options, 0), std::move(token)));
}

void multi_lock::async_acquire(const acquire_options& options, std::stop_token token,
                               move_only_function<void(result<multi_lease>)> done) {
  async_acquire(options, std::move(token)).then(std::move(done));
}

void multi_lock::lock() {
  if (!lock_within(forever)) throw lock_error(error{errc::timed_out, "not granted"});
}

bool multi_lock::try_lock() { return lock_within(duration{0}); }

bool multi_lock::lock_within(duration wait) {
  for (const lock_part& each : *parts_) {
    detail::check_usable(each.inside());
    if (owned(each)) detail::check_not_held(each.inside());
  }
  auto granted = acquire({.wait = wait});
  if (!granted) {
    const error& why = granted.error();
    if (why == errc::busy || why == errc::timed_out) return false;
    throw lock_error(why);
  }
  owner_ = core::thread_token();
  for (const lock_part& each : *parts_) {
    if (owned(each)) each.inside().in().local_queue->threads().add(owner_);
  }
  held_ = std::move(*granted);
  return true;
}

void multi_lock::unlock() noexcept {
  if (!held_) return;
  for (const lock_part& each : *parts_) {
    const detail::lock_handle& lock_handle = each.inside();
    if (!owned(each) || detail::forked(lock_handle)) continue;
    lock_handle.in().local_queue->threads().remove(owner_);
    if (owner_ != core::thread_token()) {
      lock_handle.in().client->engine->raise(event_kind::foreign_unlock,
                                             {.resource = lock_handle.in().resource});
    }
  }
  // Emptied before the locks are given back: the next holder of this object writes its own.
  const multi_lease last = std::exchange(held_, multi_lease{});
}

}  // namespace holdfast
