#include "runtime/event_loop.hpp"

#include "runtime/own_thread.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
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
    set_alarm();  // a sleeper need not wake up for that; an awake leader sets it itself
  }
  lock.unlock();
  signal(which);
  return id;
}

void event_loop::cancel(timer_id timer) noexcept {
  spi::task cancelled;
  const std::scoped_lock lock(mutex_);
  // The alarm stays: waking once too early costs less than a system call each time.
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
      // Moves it away from the descriptors, or it would wake up alongside us at the first event.
      // Its way back costs us nothing: we wait for an answer meanwhile.
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

// --- leading --------------------------------------------------------------------------------------

bool event_loop::drive(mutex_lock& lock, const waiter& self, const void* flag) {
  const own_thread mark(this, own_thread::role::dispatches, flag);
  ready_batch batch;
  while (true) {
    if (!run_round(lock)) return false;
    if (!self.unserved() || stopping_) return true;
    if (std::shared_ptr<runtime::watch> answer = take_expected(); answer != nullptr) {
      ++wakeups_;
      if (!call(lock, std::move(answer), {.readable = true, .awaited = true})) return false;
      continue;
    }
    set_alarm();
    leader_asleep_ = posted_.empty();
    const auto patience = posted_.empty() ? poller::patience::unlimited : poller::patience::none;
    // Everything that was reported is dispatched, even if our own flag is set along the way:
    // somebody else may be waiting for the rest.
    if (!collect(lock, patience, batch) || !dispatch(lock, batch)) return false;
  }
}

// If the leader is alone and has nothing else to do, the read itself can wait for the answer: one
// system call instead of two. Null: it must ask the kernel about everything.
std::shared_ptr<runtime::watch> event_loop::take_expected() noexcept {
  const auto [where, what] = std::exchange(expected_here, {});
  if (where != this || line_.size() > 1 || !posted_.empty()) return nullptr;
  const time_point now = clock::now();
  if (now - looked_at_ > unseen_limit || timers_.earliest() < now + undisturbed) return nullptr;
  return watches_.find(what);
}

// `stay`: wait for descriptors and timers afterwards, until a caller takes the lead. Otherwise only
// what is due is done: callers are active, and lead without us.
bool event_loop::lead_as_engine(mutex_lock& lock, bool stay) {
  lead_ = lead::engine;
  ready_batch batch;
  while (true) {
    if (!run_round(lock)) return false;
    if (waiter* next = line_.first_unserved(); next != nullptr && !stopping_) {
      hand_to(lock, *next);
      lock.lock();
      return true;
    }
    if (stopping_ || (!stay && posted_.empty())) {
      lead_ = lead::nobody;
      return true;
    }
    set_alarm();
    if (posted_.empty() && !park(lock)) return true;
    if (!collect(lock, poller::patience::none, batch) || !dispatch(lock, batch)) return false;
  }
}

bool event_loop::run_round(mutex_lock& lock) {
  // Only what was there at the start: a task that posts itself again must not starve the rest.
  for (std::size_t left = posted_.size(); left > 0 && !posted_.empty(); --left) {
    spi::task work = std::move(posted_.front());
    posted_.pop_front();
    if (!run_task(lock, std::move(work))) return false;
  }
  // As long as the alarm is set for the earliest timer, none is due, or the alarm will say so.
  if (timers_.earliest() >= alarm_at_) return true;
  const time_point now = clock::now();
  for (std::size_t left = timers_per_round; left > 0 && timers_.earliest() <= now; --left) {
    if (!run_task(lock, timers_.pop())) return false;
  }
  return true;
}

bool event_loop::run_task(mutex_lock& lock, spi::task work) {
  lock.unlock();
  try {
    work();
  } catch (...) {
    swallowed_.fetch_add(1, std::memory_order_relaxed);
  }
  work = nullptr;
  if (guard_.forked()) return false;
  called_.wake();
  lock.lock();
  return true;
}

bool event_loop::dispatch(mutex_lock& lock, const ready_batch& batch) {
  for (const epoll_event& event : batch.view()) {
    std::shared_ptr<runtime::watch> found = watches_.find(event.data.u64);
    spi::readiness readiness = to_readiness(event);
    if (found == nullptr || !found->concerns(readiness)) continue;
    if (!call(lock, std::move(found), readiness)) return false;
  }
  return true;
}

bool event_loop::call(mutex_lock& lock, std::shared_ptr<runtime::watch> watch,
                      spi::readiness readiness) {
  watch->running = true;
  watch->runner = std::this_thread::get_id();
  lock.unlock();
  try {
    watch->on_ready(readiness);
  } catch (...) {
    swallowed_.fetch_add(1, std::memory_order_relaxed);
  }
  if (guard_.forked()) return false;
  called_.wake();
  lock.lock();
  watch->running = false;
  if (watch->awaited) settled_.notify_all();
  if (watch->ended) {
    lock.unlock();
    watch = nullptr;
    lock.lock();
  }
  return true;
}

bool event_loop::collect(mutex_lock& lock, poller::patience patience, ready_batch& batch) {
  lock.unlock();
  poller_.wait(patience, batch);
  if (guard_.forked()) return false;  // a signal handler did
  lock.lock();
  ++wakeups_;
  looked_at_ = clock::now();
  leader_asleep_ = false;
  if (batch.alarm) alarm_at_ = time_point::max();
  return true;
}

void event_loop::set_alarm() noexcept {
  if (timers_.earliest() >= alarm_at_) return;
  alarm_at_ = timers_.earliest();
  poller_.set_alarm(alarm_at_);
}

// Unlocks.
void event_loop::hand_to(mutex_lock& lock, waiter& next) noexcept {
  lead_ = lead::caller;
  leader_ = &next;
  ++drives_;
  const wake_call call = next.call();
  lock.unlock();
  call.make();
}

// The end of every wait(): leaves the line, and passes the lead, if it is ours, to the next.
void event_loop::leave(mutex_lock& lock, waiter& self, const void* flag) noexcept {
  line_.leave(self);
  expected_here = {};
  // Others with the same flag: if it was set by a task that we ran, wake() left it to us.
  for (waiter* who = line_.find(flag); who != nullptr; who = wait_line::find_next(*who)) {
    who->wake();
  }
  if (leader_ != &self) return;
  if (waiter* next = line_.first_unserved(); next != nullptr) return hand_to(lock, *next);
  lead_ = lead::nobody;
  leader_ = nullptr;
  ++drives_;
  wake_target which = wake_target::none;
  if (engine_settled_ || !posted_.empty() || timers_.earliest() < engine_up_at_) which = rouse();
  lock.unlock();
  signal(which);
}

// The engine leads and sleeps. False if the lead was taken from it meanwhile.
bool event_loop::park(mutex_lock& lock) noexcept {
  engine_parked_ = true;
  engine_asleep_ = true;
  lock.unlock();
  poller_.wait_as_engine();
  lock.lock();
  ++wakeups_;
  engine_asleep_ = false;
  engine_parked_ = false;
  return lead_ == lead::engine;
}

// The engine does not lead and sleeps: for a short while or, if one caller has led ever since the
// last look, until that caller leaves. `seen`: drives_ at the last look.
void event_loop::stand_by(mutex_lock& lock, std::uint64_t& seen) noexcept {
  std::optional<duration> limit;
  engine_settled_ = lead_ == lead::caller && drives_ == seen;
  seen = drives_;
  if (!engine_settled_) {
    const time_point now = clock::now();
    engine_up_at_ = now + look_interval;
    if (lead_ == lead::nobody) engine_up_at_ = std::min(engine_up_at_, timers_.earliest());
    limit = engine_up_at_ - now;
  }
  engine_asleep_ = true;
  lock.unlock();
  poller_.wait_for_engine_wake(limit);
  lock.lock();
  ++wakeups_;
  engine_asleep_ = false;
  engine_settled_ = false;
  engine_up_at_ = time_point::max();
}

bool event_loop::work_waits() noexcept {
  if (!posted_.empty()) return true;
  if (timers_.earliest() > clock::now()) return false;
  // The alarm went off while nobody led, and is still pending in the kernel: treat it as handled.
  alarm_at_ = time_point::max();
  return true;
}

void event_loop::serve() {
  const own_thread mark(this, own_thread::role::dispatches);
  mutex_lock lock(mutex_);
  std::uint64_t seen = drives_;
  while (!stopping_) {
    const bool quiet = drives_ == seen;
    if (lead_ == lead::nobody && (quiet || work_waits())) {
      if (!lead_as_engine(lock, quiet)) return;
    } else {
      stand_by(lock, seen);
    }
  }
}

}  // namespace holdfast::runtime
