#include "stores/sqlite/worker.hpp"

#include <system_error>
#include <utility>

namespace holdfast::sqlite {

worker::worker(std::shared_ptr<spi::reactor> reactor) : reactor_(std::move(reactor)) {}
worker::~worker() { close(); }

bool worker::post(time_point deadline, spi::task run, spi::task refuse) {
  auto work = std::make_shared<job>();
  work->run = std::move(run);
  work->refuse = std::move(refuse);
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closed || state_->jobs.size() >= queue_limit) return false;
    if (!thread_ && !start()) return false;
    work->timer = reactor_->at(deadline, [work] {
      if (!work->taken.exchange(true)) work->refuse();
    });
    state_->jobs.push_back(std::move(work));
  }
  state_->changed.notify_one();
  return true;
}

// False: no thread can be made now.
bool worker::start() {
  try {
    // Both are kept by the thread, which may have to outlive this object.
    thread_ =
        std::make_unique<std::jthread>([of = state_, reactor = reactor_] { serve(of, *reactor); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void worker::serve(const std::shared_ptr<state>& of, spi::reactor& reactor) {
  std::unique_lock lock(of->mutex);
  for (;;) {
    of->changed.wait(lock, [&] { return of->closed || !of->jobs.empty(); });
    if (of->jobs.empty()) return;
    std::shared_ptr<job> work = std::move(of->jobs.front());
    of->jobs.pop_front();
    lock.unlock();
    if (!work->taken.exchange(true)) {
      reactor.cancel(work->timer);
      work->run();
    }
    work.reset();  // what it captured ends here, not under the mutex
    lock.lock();
  }
}

void worker::close() noexcept {
  std::deque<std::shared_ptr<job>> refused;
  std::unique_ptr<std::jthread> thread;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    refused.swap(state_->jobs);
    thread = std::move(thread_);
  }
  state_->changed.notify_all();
  for (const auto& work : refused) {
    if (work->taken.exchange(true)) continue;
    reactor_->cancel(work->timer);
    work->refuse();
  }
  if (thread && thread->get_id() == std::this_thread::get_id()) thread->detach();
}

void worker::abandon() noexcept { [[maybe_unused]] const auto* leaked = thread_.release(); }

}  // namespace holdfast::sqlite
