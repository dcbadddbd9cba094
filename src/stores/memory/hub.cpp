// A ledger for the clients of one process: delivers each effect.
#include "stores/memory/hub.hpp"

#include <utility>
#include <variant>

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
    }  // what the call owned is destroyed before the recipient may be gone
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
    if (each.to == who) each.to = nobody;  // dropped by the delivering thread, under no lock
  }
  if (deliverer_ == std::this_thread::get_id()) return;
  ++retiring_;
  called_.wait(lock, [this, who] { return current_ != who; });
  --retiring_;
}

// Ends a subscription; keeps the hub alive until then.
class hub::ending : public spi::subscription {
 public:
  ending(std::shared_ptr<hub> owner, outbox::recipient who) : owner_(std::move(owner)), who_(who) {}
  ending(const ending&) = delete;
  ending& operator=(const ending&) = delete;
  ~ending() override { owner_->end(who_); }

 private:
  const std::shared_ptr<hub> owner_;
  const outbox::recipient who_;
};

hub::hub()
    : outbox_(std::make_shared<outbox>()),
      // Asked only by the ledger, and that only under the mutex.
      ledger_({}, [this](process_id process) { return processes_.contains(process); }) {}

process_id hub::join() {
  const std::lock_guard lock(mutex_);
  const process_id process = ++last_number_;
  processes_.try_emplace(process);
  return process;
}

void hub::leave(process_id process) noexcept {
  decltype(processes_)::node_type ended;  // destroyed under no lock
  {
    const std::lock_guard lock(mutex_);
    ended = processes_.extract(process);
  }
  outbox_->retire(process);
}

result<spi::outcome> hub::attempt(spi::runtime& runtime, process_id process,
                                  const spi::claim_ptr& claim,
                                  std::shared_ptr<spi::wakeup> wakeup) {
  return run(runtime, [&](ledger& book, spi::server_time now, effects& out) {
    const auto client = processes_.find(process);
    if (client == processes_.end()) {
      return result<spi::outcome>(failure(errc::cancelled, "memory: closed"));
    }
    auto answer = book.attempt(now, claim, process, std::nullopt, out);
    const auto* blocked = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
    if (answer && (blocked == nullptr || blocked->queued)) {
      // It may have ended and returned in this very step.
      std::erase(out.ended, std::pair(process, claim->id));
      // The previous one is destroyed with this call, under no lock.
      wakeup = client->second.add(claim->id, std::move(wakeup));
    }
    return answer;
  });
}

result<spi::granted> hub::transfer(spi::runtime& runtime, process_id process,
                                   const spi::claim_id& from, const spi::claim_ptr& to,
                                   std::shared_ptr<spi::wakeup> wakeup, on_leave then) {
  return run(runtime, [&](ledger& book, spi::server_time now, effects& out) {
    const auto client = processes_.find(process);
    if (client == processes_.end()) {
      return result<spi::granted>(failure(errc::cancelled, "memory: closed"));
    }
    auto answer = book.transfer(now, from, to, process, then, out);
    if (!answer) {
      out.ended.emplace_back(process, from);
    } else if (wakeup) {
      wakeup = client->second.add(to->id, std::move(wakeup));
    }
    return answer;
  });
}

spi::departure hub::leave(spi::runtime& runtime, process_id process, const spi::claim& claim,
                          on_leave then) {
  std::shared_ptr<spi::wakeup> over;  // destroyed under no lock
  return run(runtime, [&](ledger& book, spi::server_time now, effects& out) {
    const auto client = processes_.find(process);
    if (client != processes_.end()) over = client->second.remove(claim.id);
    return book.leave(now, claim, process, then, out);
  });
}

spi::server_time hub::server_now(const spi::runtime& runtime) noexcept {
  return spi::server_time(runtime.now().time_since_epoch());
}

void hub::dispatch(effects& out, std::vector<std::shared_ptr<spi::wakeup>>& over) {
  for (push& each : out.pushes) dispatch(each);
  for (ledger_event& each : out.events) {
    for (const auto& [who, seen] : listeners_) {
      if (!seen.sink || seen.resource.space != each.resource.space) continue;
      if (!seen.resource.name.empty() && seen.resource.name != each.resource.name) continue;
      outbox_->add(who, [sink = seen.sink, event = each.event] { (*sink)(event); });
    }
  }
  for (const spi::resource_id& changed : out.latches) {
    for (const auto& [who, watcher] : listeners_) {
      if (!watcher.on_change || watcher.resource != changed) continue;
      outbox_->add(who, [on_change = watcher.on_change] { (*on_change)(); });
    }
  }
  for (const auto& [process, claim] : out.ended) {
    const auto client = processes_.find(process);
    if (client != processes_.end()) over.push_back(client->second.remove(claim));
  }
}

void hub::dispatch(push& each) {
  const auto client = processes_.find(each.process);
  if (client == processes_.end()) return;
  if (auto wakeup = client->second.find(each.claim)) {
    outbox_->add(client->first, [wakeup = std::move(wakeup), what = stores::push(std::move(each))] {
      what.deliver(*wakeup);
    });
  }
}

std::unique_ptr<spi::subscription> hub::observe(const spi::resource_id& resource,
                                                spi::function<void(const spi::store_event&)> sink) {
  return add({resource, std::make_shared<decltype(sink)>(std::move(sink)), nullptr});
}

std::unique_ptr<spi::subscription> hub::watch_latch(const spi::resource_id& resource,
                                                    spi::latch_watch on_change) {
  return add({resource, nullptr, std::make_shared<spi::latch_watch>(std::move(on_change))});
}

std::unique_ptr<spi::subscription> hub::add(listener who) {
  const std::lock_guard lock(mutex_);
  const outbox::recipient number = ++last_number_;
  listeners_.emplace(number, std::move(who));
  return std::make_unique<ending>(shared_from_this(), number);
}

void hub::end(outbox::recipient who) noexcept {
  decltype(listeners_)::node_type ended;  // destroyed under no lock
  {
    const std::lock_guard lock(mutex_);
    ended = listeners_.extract(who);
  }
  outbox_->retire(who);
}

}  // namespace holdfast::memory
