#include "runtime/notifier.hpp"

#include "runtime/own_thread.hpp"
#include "runtime/service_thread.hpp"

#include <utility>

namespace holdfast::runtime {

notifier::notifier(std::shared_ptr<const void> owner) : state_(std::make_shared<state>()) {
  thread_ = start_service("holdfast-notify", [kept = state_, owned = std::move(owner)] {
    const own_thread mark(owned.get(), own_thread::role::runs_user_code);
    run(*kept);
  });
}

notifier::~notifier() { stop(); }

void notifier::notify(spi::task work) {
  {
    const std::scoped_lock lock(state_->mutex);
    // After stop() nobody would run it. Its destructor runs in the caller, outside the lock.
    if (state_->stopping) return;
    state_->queue.push_back(std::move(work));
    state_->queued.store(state_->queue.size(), std::memory_order_relaxed);
  }
  state_->changed.notify_one();
}

void notifier::stop() noexcept {
  if (thread_ == nullptr) return;
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_one();
  end_service(std::move(thread_));
}

void notifier::abandon() noexcept {
  // Both are leaked: joining or detaching would touch a thread that this process does not have, and
  // a condition variable with a vanished waiter cannot be destroyed.
  [[maybe_unused]] const auto* thread = thread_.release();
  state_->itself = state_;
}

bool notifier::lagging() const noexcept {
  return state_->queued.load(std::memory_order_relaxed) > queue_limit;
}

std::uint64_t notifier::swallowed() const noexcept {
  return state_->swallowed.load(std::memory_order_relaxed);
}

void notifier::run(state& state) {
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return state.stopping || !state.queue.empty(); });
    if (state.queue.empty()) return;
    spi::task work = std::move(state.queue.front());
    state.queue.pop_front();
    state.queued.store(state.queue.size(), std::memory_order_relaxed);
    lock.unlock();
    try {
      work();
    } catch (...) {
      state.swallowed.fetch_add(1, std::memory_order_relaxed);
    }
    work = nullptr;
    // The task forked and this is the child: there is nothing left to serve, nor a lock to trust.
    if (state.guard.forked()) return;
    lock.lock();
  }
}

}  // namespace holdfast::runtime
