// What everybody may call: adding work, watching, waiting. Leading is in event_loop_lead.cpp.
#include "runtime/event_loop.hpp"

#include "runtime/own_thread.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace holdfast::runtime {

void event_loop::post(spi::task work) {
  mutex_lock lock(mutex_);
  if (stopping_) return;  // `work` ends after the lock: it is destroyed by the caller
  posted_.push_back(std::move(work));
  const wake_target which = rouse();
  lock.unlock();
  signal(which);
}

event_loop::timer_id event_loop::at(time_point when, spi::task work) {
  mutex_lock lock(mutex_);
  if (stopping_) return 0;
  const timer_id id = timers_.add(when, std::move(work));
  wake_target which = wake_target::none;
  if (lead_ == lead::nobody) {
    if (when < engine_up_at_) which = rouse();
  } else if (lead_ == lead::caller ? leader_asleep_ : engine_asleep_) {
    set_alarm();  // who sleeps need not get up for that; who is up does it before it sleeps
  }
  lock.unlock();
  signal(which);
  return id;
}

void event_loop::cancel(timer_id timer) noexcept {
  spi::task cancelled;
  const std::scoped_lock lock(mutex_);
  // The alarm stays: once too early costs less than a system call each time.
  cancelled = timers_.cancel(timer);
}

event_loop::watch_id event_loop::watch(int fd, bool readable, bool writable,
                                       spi::function<void(spi::readiness)> on_ready) {
  const std::scoped_lock lock(mutex_);
  const watch_id id = watches_.add(fd, readable, writable, std::move(on_ready));
  try {
    poller_.add(fd, id, readable, writable);
  } catch (...) {
    watches_.take(id);
    throw;
  }
  return id;
}

void event_loop::rewatch(watch_id id, bool readable, bool writable) {
  const std::scoped_lock lock(mutex_);
  const std::shared_ptr<runtime::watch> found = watches_.find(id);
  if (found == nullptr) return;
  if (found->readable == readable && found->writable == writable) return;
  poller_.change(found->fd, id, readable, writable);
  found->readable = readable;
  found->writable = writable;
}

void event_loop::unwatch(watch_id id) noexcept {
  std::shared_ptr<runtime::watch> ended;
  mutex_lock lock(mutex_);
  ended = watches_.take(id);
  if (ended == nullptr) return;
  ended->ended = true;
  poller_.remove(ended->fd);
  if (ended->running && ended->runner != std::this_thread::get_id()) {
    ended->awaited = true;
    settled_.wait(lock, [&] { return !ended->running; });
  }
  lock.unlock();
}

void event_loop::wait(const std::atomic<bool>& flag) {
  if (flag.load(std::memory_order_acquire)) {
    expected_here = {};
    return;
  }
  if (own_thread::dispatching(this)) {
    std::fputs("holdfast: a task of the event loop waits for the event loop\n", stderr);
    std::abort();
  }
  mutex_lock lock(mutex_);
  waiter& self = line_.enter(flag);
  while (self.unserved() && !stopping_) {
    const bool parked = lead_ == lead::engine && engine_parked_;
    if (lead_ == lead::nobody || parked) {
      lead_ = lead::caller;
      leader_ = &self;
      ++drives_;
      // Away from the descriptors, or it would wake up beside us at the first event. Its way back
      // costs us nothing: we wait for an answer meanwhile.
      if (parked && std::exchange(engine_parked_, false) && std::exchange(engine_asleep_, false)) {
        lock.unlock();
        signal(wake_target::engine);
        lock.lock();
      }
    }
    if (leader_ == &self) {
      if (!drive(lock, self, &flag)) return;
    } else {
      lock.unlock();
      self.sleep();
      if (self.dismissed()) break;
      lock.lock();
    }
  }
  if (!self.dismissed()) return leave(lock, self, &flag);
  expected_here = {};
  line_.give_back(self);
}

void event_loop::wake(const std::atomic<bool>& flag) noexcept {
  // Set by a task that the waiting thread itself runs: it looks when the task returns.
  if (own_thread::drives_for(this, &flag)) return;
  const bool in_callback = own_thread::dispatches(this);
  wake_call sleeper;
  bool leads = false;
  {
    const std::scoped_lock lock(mutex_);
    waiter* next = nullptr;
    for (waiter* who = line_.find(&flag); who != nullptr; who = next) {
      next = wait_line::find_next(*who);
      if (who == leader_) {
        leads = std::exchange(leader_asleep_, false);
        continue;
      }
      if (!who->unserved()) line_.dismiss(*who);
      if (in_callback) {
        called_.add(who->call());
      } else if (sleeper.bit == 0) {
        sleeper = who->call();
      } else {
        who->wake();
      }
    }
  }
  if (leads) signal(wake_target::leader);
  sleeper.make();
}

void event_loop::stop() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    line_.wake_all();
  }
  signal(wake_target::leader);
  signal(wake_target::engine);
}

void event_loop::clear() noexcept {
  // Destroyed at the end, after the lock: their destructors may call us.
  std::deque<spi::task> posted;
  timer_heap timers;
  watch_table watches(poller::first_id);
  const std::scoped_lock lock(mutex_);
  std::swap(posted, posted_);
  std::swap(timers, timers_);
  std::swap(watches, watches_);
}

std::uint64_t event_loop::wakeups() const {
  const std::scoped_lock lock(mutex_);
  return wakeups_;
}

std::uint64_t event_loop::swallowed() const noexcept {
  return swallowed_.load(std::memory_order_relaxed);
}

std::size_t event_loop::waiting() const {
  const std::scoped_lock lock(mutex_);
  return line_.size();
}

std::size_t event_loop::watching() const {
  const std::scoped_lock lock(mutex_);
  return watches_.size();
}

event_loop::lead event_loop::leader() const {
  const std::scoped_lock lock(mutex_);
  return lead_;
}

event_loop::wake_target event_loop::rouse() noexcept {
  const bool caller = lead_ == lead::caller;
  if (!std::exchange(caller ? leader_asleep_ : engine_asleep_, false)) return wake_target::none;
  return caller ? wake_target::leader : wake_target::engine;
}

void event_loop::signal(wake_target which) noexcept {
  if (which == wake_target::leader) poller_.wake();
  if (which == wake_target::engine) poller_.wake_engine();
}

}  // namespace holdfast::runtime
