// The leader's work, and how the lead is passed on. The rules are in event_loop.hpp.
#include "runtime/event_loop.hpp"
#include "runtime/own_thread.hpp"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace holdfast::runtime {

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
    // What was reported is dispatched to the end, also where our own flag is set on the way: the
    // rest may be what somebody else waits for.
    if (!collect(lock, patience, batch) || !dispatch(lock, batch)) return false;
  }
}

// Where the leader is alone and nothing else is to be done, the read itself can wait for the answer:
// one system call instead of two. Null: it must ask the kernel about everything.
std::shared_ptr<runtime::watch> event_loop::take_expected() noexcept {
  const auto [where, what] = std::exchange(expected_here, {});
  if (where != this || line_.size() > 1 || !posted_.empty()) return nullptr;
  const time_point now = clock::now();
  if (now - looked_at_ > unseen_limit || timers_.earliest() < now + undisturbed) return nullptr;
  return watches_.find(what);
}

// `stay`: wait for descriptors and timers afterwards, until the lead goes to a caller. Otherwise
// only what is due is done: callers are about, and lead without us.
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
  // Only what was there at the start: a task that posts itself again must not keep out the rest.
  for (std::size_t left = posted_.size(); left > 0 && !posted_.empty(); --left) {
    spi::task work = std::move(posted_.front());
    posted_.pop_front();
    if (!run_task(lock, std::move(work))) return false;
  }
  // As long as the alarm is set for the earliest, none is due, or the alarm will say so.
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

// The end of every wait(): out of the line, and the lead, if it is ours, to the next.
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

// The engine does not lead and sleeps: a little while, or, where one caller has led ever since the
// last look, until that leaves. `seen`: drives_ at the last look.
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
  // The alarm has gone off while nobody led, and lies in the kernel: as if it had been heard.
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
