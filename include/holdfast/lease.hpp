// A lease: a lock that you hold. Whoever owns the object holds the lock, on any thread or coroutine.
// The lock is released when the lease is released or destroyed.
//
//   if (auto lease = stock.acquire({.wait = 1s})) {
//     sell(item, lease->fence(), lease->lost());   // stop when lost() fires
//   }
#pragma once

#include <holdfast/awaitable.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

namespace holdfast {

namespace core {
class hold;
}

// Movable, not copyable. Const members may be called from any thread while the lease is not moved;
// only its owner moves, releases and destroys it. A moved-from or default-constructed lease holds
// nothing: valid() is false, release() returns not_held.
class [[nodiscard]] lease {
 public:
  lease() noexcept = default;
  explicit lease(std::shared_ptr<core::hold> hold) noexcept;
  lease(lease&& other) noexcept = default;
  lease& operator=(lease&& other) noexcept;  // first releases what it held, as the destructor does
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  // Releases the lock without waiting for the answer. A failed release is an event, and is repeated
  // in the background until the ttl has passed. In a forked child it does nothing.
  ~lease();

  // Releases the lock and waits for the answer, at most a third of the ttl or 5 s. Errors: lost: it
  // had ended before; unavailable: no answer, repeated in the background; not_held: nothing to
  // release. The lease holds nothing afterwards, whatever the answer. If others already wait for
  // the lock, this process may keep it for 0.1 ms, for a thread that asks again (guarantees.md,
  // G7.2).
  [[nodiscard]] result<void> release();
  // The same without blocking, for coroutines and callbacks. The lease holds nothing from this call
  // on, whether the answer is awaited or not.
  awaitable<void> async_release();

  // Hands the lease over to the owner of the token; client::adopt() continues it in this process or
  // another one: the same lock with the same fence, while nobody else gets in. Until then it is not
  // renewed and lives on its ttl alone, counted from this call. The token is a secret: anyone who
  // has it can adopt, renew and release. Waits for the answer, at most a third of the ttl or 5 s.
  // Errors: lost: it had ended before; unavailable: no answer, so it is not known whether the
  // engine carried it out; the lock is released in the background, or ends with its ttl. The lease
  // holds nothing afterwards, whatever the answer, and lost() does not fire. The exception is
  // unsupported, if the engine cannot do it, or the lease is a leadership or degraded; then the
  // lease goes on as before.
  [[nodiscard]] result<std::string> detach();
  // The same without blocking.
  awaitable<std::string> async_detach();

  // Compares with the clock at each call, so it is right even if the process was stopped or suspended
  // and lost() has not fired yet. It says nothing about the time after the call: pass the fence on.
  [[nodiscard]] bool valid() const noexcept;
  // When validity ends if no renewal is answered, by holdfast::clock; time_point::max() if holds of
  // the engine do not end by time. It moves forward with every renewal.
  [[nodiscard]] time_point valid_until() const noexcept;
  // The remaining validity; zero if it is over.
  [[nodiscard]] duration valid_for() const noexcept;
  // Fires at the latest when validity ends, before the engine could grant the lock to anyone else.
  // Its callbacks run on the client's notifier thread, never on the thread that renews.
  [[nodiscard]] std::stop_token lost() const;
  // Blocks until the lease is lost. ok: it is lost; timed_out: not yet; cancelled: by the token;
  // not_held: the lease holds nothing, or was released in the meantime.
  [[nodiscard]] result<void> wait_lost(duration wait = forever, std::stop_token token = {}) const;
  // For poll() and epoll: an eventfd that becomes readable when the lease is lost, and stays so. It
  // belongs to the lease: do not read, write or close it, nor use it after the lease was released
  // or destroyed. not_held: holds nothing; lost: in a forked child; overloaded: no descriptor is
  // left.
  [[nodiscard]] result<int> lost_fd() const;
  // Fires when somebody else waits for this lock, so that a batch job can step aside.
  [[nodiscard]] std::stop_token wanted() const;
  // The fencing token: greater than that of every grant of this name that ended before this one was
  // requested. Constant for the life of the lease, except for upgrades and downgrades.
  [[nodiscard]] fence_token fence() const noexcept;
  // What the engine granted, which may differ from what was requested.
  [[nodiscard]] duration ttl() const noexcept;
  // Granted by the local fallback while the engine was unreachable (degrade=local).
  [[nodiscard]] bool degraded() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;  // of the lock
  // The public id of the claim, as the command line shows it.
  [[nodiscard]] std::string claim() const;

  // Whether there is something to release: false if moved from, released or default-constructed. It
  // does not say that the lock is still yours; valid() does.
  explicit operator bool() const noexcept { return hold_ != nullptr; }

  // For the primitives of this library; take_inside() leaves a lease that holds nothing.
  [[nodiscard]] const std::shared_ptr<core::hold>& inside() const noexcept { return hold_; }
  [[nodiscard]] std::shared_ptr<core::hold> take_inside() noexcept {
    return std::exchange(hold_, nullptr);
  }

 private:
  std::shared_ptr<core::hold> hold_;
};

// Waits in a coroutine until the lease is lost; returns what wait_lost() does. The lease may be moved,
// released or destroyed in the meantime.
awaitable<void> async_lost(const lease& held);

}  // namespace holdfast
