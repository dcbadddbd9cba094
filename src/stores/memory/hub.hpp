// A ledger for the clients of one process: under a mutex, with a way to every client. What a server
// is to the stores that have one.
#pragma once

#include "stores/memory/ledger.hpp"
#include "stores/memory/outbox.hpp"
#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::memory {

// Thread-safe. Wake-ups and subscribers are called under no lock, in the order of the steps.
class hub : public std::enable_shared_from_this<hub> {
 public:
  hub();
  hub(const hub&) = delete;
  hub& operator=(const hub&) = delete;

  // A client comes: its claims are reachable until it leaves. When leave returns, none of its
  // wake-ups is called any more.
  process_id join();
  void leave(process_id process) noexcept;

  // One step: verb(ledger, now, effects) under the mutex, then what it causes.
  template <class Verb>
  auto run(spi::runtime& runtime, Verb&& verb) {
    std::vector<std::shared_ptr<spi::wakeup>> over;  // ended by this step; destroyed under no lock
    std::unique_lock lock(mutex_);
    effects out;
    out.observed = !observers_.empty();
    auto answer = std::forward<Verb>(verb)(ledger_, server_now(runtime), out);
    dispatch(out, over);
    lock.unlock();
    outbox_->deliver(runtime);
    return answer;
  }

  // The wake-up stays while the claim lives here.
  result<spi::outcome> attempt(spi::runtime& runtime, process_id process,
                               const spi::claim_ptr& claim, std::shared_ptr<spi::wakeup> wakeup);
  result<spi::granted> transfer(spi::runtime& runtime, process_id process,
                                const spi::claim_id& from, const spi::claim_ptr& to,
                                std::shared_ptr<spi::wakeup> wakeup, on_leave then);
  spi::departure leave(spi::runtime& runtime, process_id process, const spi::claim& claim,
                       on_leave then);

  std::unique_ptr<spi::subscription> observe(const spi::resource_id& resource,
                                             spi::function<void(const spi::store_event&)> sink);
  std::unique_ptr<spi::subscription> watch_latch(const spi::resource_id& resource,
                                                 spi::latch_watch on_change);

 private:
  class ending;
  struct observer {
    spi::resource_id resource;
    std::shared_ptr<spi::function<void(const spi::store_event&)>> sink;
  };
  struct latch_watcher {
    spi::resource_id resource;
    std::shared_ptr<spi::latch_watch> on_change;
  };

  static spi::server_time server_now(const spi::runtime& runtime) noexcept;
  void dispatch(effects& out, std::vector<std::shared_ptr<spi::wakeup>>& over);
  void dispatch(push& each);
  void end(outbox::recipient who) noexcept;

  const std::shared_ptr<outbox> outbox_;
  std::mutex mutex_;
  std::map<process_id, stores::wakeup_registry<>> processes_;  // guarded by mutex_
  memory::ledger ledger_;                                      // guarded by mutex_
  std::map<outbox::recipient, observer> observers_;            // guarded by mutex_
  std::map<outbox::recipient, latch_watcher> latch_watchers_;  // guarded by mutex_
  std::int64_t last_number_ = 0;  // guarded by mutex_; of processes and subscriptions
};

}  // namespace holdfast::memory
