// A ledger for the clients of one process: under a mutex, with a way to reach every client. It is
// what the server is to other stores.
#pragma once

#include "stores/memory/ledger.hpp"
#include "stores/wakeup_registry.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::memory {

// Calls to be made once no lock is held, in the order in which they were caused. The first thread
// to arrive delivers, including what other threads add meanwhile; a call that causes further calls
// adds them to the end, so nothing recurses.
//
// Thread-safe.
class outbox : public std::enable_shared_from_this<outbox> {
 public:
  // The receiver of calls; retire() ends them.
  using recipient = std::int64_t;

  // Makes no call: may be used under a lock, which then determines the order.
  void add(recipient to, spi::task call);

  // Under no lock. Makes the queued calls, unless another thread does so already; after a batch of
  // them the runtime continues, so that no caller delivers forever.
  void deliver(spi::runtime& runtime);

  // When it returns, no call to this recipient is under way, unless on this very thread, and no
  // more will come. Under no lock that a call could need.
  void retire(recipient who) noexcept;

 private:
  static constexpr std::size_t batch = 256;
  static constexpr recipient nobody = 0;

  struct entry {
    recipient to;
    spi::task call;
  };

  std::mutex mutex_;
  std::condition_variable called_;
  std::deque<entry> entries_;   // guarded by mutex_
  bool delivering_ = false;     // guarded by mutex_
  recipient current_ = nobody;  // guarded by mutex_; who is being called
  std::thread::id deliverer_;   // guarded by mutex_
  std::size_t retiring_ = 0;    // guarded by mutex_; how many wait in retire()
};

// Thread-safe. Wake-ups and subscribers are called under no lock, in the order of the steps.
class hub : public std::enable_shared_from_this<hub> {
 public:
  hub();
  hub(const hub&) = delete;
  hub& operator=(const hub&) = delete;

  // A client joins: its claims are reachable until it leaves. Once leave returns, none of its
  // wake-ups is called any more.
  process_id join();
  void leave(process_id process) noexcept;

  // One step: verb(ledger, now, effects) under the mutex, then what it causes.
  template <class Verb>
  auto run(spi::runtime& runtime, Verb&& verb) {
    std::vector<std::shared_ptr<spi::wakeup>> over;  // ended by this step; destroyed under no lock
    std::unique_lock lock(mutex_);
    effects out;
    out.observed = !listeners_.empty();
    auto answer = std::forward<Verb>(verb)(ledger_, server_now(runtime), out);
    dispatch(out, over);
    lock.unlock();
    outbox_->deliver(runtime);
    return answer;
  }

  // The wake-up is kept as long as the claim lives here.
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
  struct listener {
    spi::resource_id resource;
    // One of them.
    std::shared_ptr<spi::function<void(const spi::store_event&)>> sink;
    std::shared_ptr<spi::latch_watch> on_change;
  };

  static spi::server_time server_now(const spi::runtime& runtime) noexcept;
  void dispatch(effects& out, std::vector<std::shared_ptr<spi::wakeup>>& over);
  void dispatch(push& each);
  std::unique_ptr<spi::subscription> add(listener who);
  void end(outbox::recipient who) noexcept;

  const std::shared_ptr<outbox> outbox_;
  std::mutex mutex_;
  std::map<process_id, stores::wakeup_registry<>> processes_;  // guarded by mutex_
  memory::ledger ledger_;                                      // guarded by mutex_
  std::map<outbox::recipient, listener> listeners_;            // guarded by mutex_
  std::int64_t last_number_ = 0;  // guarded by mutex_; of processes and subscriptions
};

}  // namespace holdfast::memory
