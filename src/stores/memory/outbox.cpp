// Calls to be made once no lock is held: the loop that makes them.
#include "stores/memory/outbox.hpp"

#include <utility>

namespace holdfast::memory {

void outbox::add(recipient to, spi::task call) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({to, std::move(call)});
}

void outbox::deliver(spi::runtime& runtime) {
  std::unique_lock lock(mutex_);
  if (delivering_ || entries_.empty()) return;
  delivering_ = true;
  deliverer_ = std::this_thread::get_id();
  for (std::size_t calls = 0; calls < batch && !entries_.empty(); ++calls) {
    {
      entry next = std::move(entries_.front());
      entries_.pop_front();
      current_ = next.to;
      lock.unlock();
      if (next.to != nobody) next.call();
    }  // what the call held on to ends before the recipient may be gone
    lock.lock();
    current_ = nobody;
    if (retiring_ > 0) called_.notify_all();
  }
  delivering_ = false;
  const bool more = !entries_.empty();
  lock.unlock();
  if (more) runtime.post([self = shared_from_this(), &runtime] { self->deliver(runtime); });
}

void outbox::retire(recipient who) noexcept {
  std::unique_lock lock(mutex_);
  for (entry& each : entries_) {
    if (each.to == who) each.to = nobody;  // dropped by who delivers, under no lock
  }
  if (deliverer_ == std::this_thread::get_id()) return;
  ++retiring_;
  called_.wait(lock, [this, who] { return current_ != who; });
  --retiring_;
}

}  // namespace holdfast::memory
