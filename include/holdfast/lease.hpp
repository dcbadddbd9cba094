// A lease: a lock in your hands. Its owner holds the lock, on whatever thread or coroutine; it
// is given back when it is released or destroyed.
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

// Movable, not copyable. Const members may be called from any thread while the lease stays in place;
// moving, releasing and destroying it is the owner's. A moved-from or default-made lease holds
// nothing: valid() is false, release() answers not_held.
class [[nodiscard]] lease {
 public:
  lease() noexcept = default;
  explicit lease(std::shared_ptr<core::hold> hold) noexcept;
  lease(lease&& other) noexcept = default;
  lease& operator=(lease&& other) noexcept;  // gives back what it held, as the destructor does
  lease(const lease&) = delete;
  lease& operator=(const lease&) = delete;
  // Gives the lock back without waiting for the answer. A release that fails is an event, and is
  // repeated in the background until the ttl has passed. In a forked child it does nothing.
  ~lease();

  // Gives the lock back and waits for the answer, at most a third of the ttl or 5 s. ok; lost: it
  // had ended before; unavailable: no answer, goes on in the background; not_held: nothing to give
  // back. Holds nothing afterwards, whatever the answer.
  [[nodiscard]] result<void> release();
  // The same without blocking: for coroutines and callbacks. Holds nothing from this call on, whether
  // the answer is awaited or not.
  awaitable<void> async_release();

  // Compares with the clock at each call: right even when the process was stopped or suspended and
  // lost() has not fired yet. What happens after the call is not covered: pass the fence on.
  [[nodiscard]] bool valid() const noexcept;
  // When validity ends if no renewal is answered, by holdfast::clock; time_point::max() where the
  // engine's holds do not end by time. It moves forward with every renewal.
  [[nodiscard]] time_point valid_until() const noexcept;
  // The same as a span from now: zero if it is over.
  [[nodiscard]] duration valid_for() const noexcept;
  // Fires at the latest when validity ends, before the engine would give the lock to another. Its
  // callbacks run on the client's notifier thread, never on the one that renews.
  [[nodiscard]] std::stop_token lost() const;
  // Blocks until the lease is lost. ok: it is lost; timed_out: not yet; cancelled: by the token;
  // not_held: it holds nothing, or was released meanwhile.
  [[nodiscard]] result<void> wait_lost(duration wait = forever, std::stop_token token = {}) const;
  // For poll() and epoll: an eventfd that becomes readable when the lease is lost, and stays so. It is
  // the lease's: not to be read, written or closed, and not to be used after the lease was released
  // or destroyed. not_held: holds nothing; lost: in a forked child; overloaded: no descriptor is left.
  [[nodiscard]] result<int> lost_fd() const;
  // Fires when somebody waits for this lock: a batch job may step aside.
  [[nodiscard]] std::stop_token wanted() const;
  // Greater than the fence of every grant of this name that ended before this one was asked for.
  // Constant for the life of the lease (but for up- and downgrade of a shared_mutex).
  [[nodiscard]] fence_token fence() const noexcept;
  // What the engine gave, which may differ from what was asked for.
  [[nodiscard]] duration ttl() const noexcept;
  // Taken from a stand-in while the engine was unreachable, where that was asked for.
  [[nodiscard]] bool degraded() const noexcept;
  [[nodiscard]] const std::string& name() const noexcept;
  // Public id of the claim, as the command line shows it.
  [[nodiscard]] std::string claim() const;

  // Whether there is something to release: false only if moved from, released or made empty. It does
  // not say that the lock is still yours; valid() does.
  explicit operator bool() const noexcept { return hold_ != nullptr; }

  // For the primitives of this library; take_inside() leaves a lease that holds nothing.
  [[nodiscard]] const std::shared_ptr<core::hold>& inside() const noexcept { return hold_; }
  [[nodiscard]] std::shared_ptr<core::hold> take_inside() noexcept {
    return std::exchange(hold_, nullptr);
  }

 private:
  std::shared_ptr<core::hold> hold_;
};

// Waits in a coroutine until the lease is lost: answers as wait_lost(). The lease may be moved, released
// and destroyed meanwhile.
awaitable<void> async_lost(const lease& held);

}  // namespace holdfast
