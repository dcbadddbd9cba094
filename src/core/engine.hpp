// The engine: the inside of a client. It turns requests into claims on a store and claims into
// holds, and owns everything that is written once for all stores: waiting, renewal, loss, lost
// answers, the local queue.
//
// Thread-safe. Nothing here blocks; completions are called exactly once, on whatever thread brought
// the answer, under no lock, and must not block.
//
// Shutdown: close() cancels all waiters, declares all holds lost, releases them, and completes when
// every release is answered or the limit has passed.
#pragma once

#include "core/agenda.hpp"
#include "core/attempt_window.hpp"
#include "core/limits.hpp"
#include "core/meter.hpp"
#include "core/watchdog.hpp"

#include <holdfast/awaitable.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::core {

// Names whose release was requested while another thread was busy with the claim, so that the store
// does not know of it yet. The next request for such a name goes to the store after that release: a
// thread that unlocks and then tries finds the lock free.

// Thread-safe; costs one load while there are none.
class departures {
 public:
  void announce(const spi::resource_id& resource) {
    const std::lock_guard lock(mutex_);
    ++unsent_[resource].count;
    any_.store(true, std::memory_order_release);
  }

  // An announced release has been passed to the store. After the last of them, runs what waited for
  // it.
  void sent(const spi::resource_id& resource) {
    std::vector<spi::task> next;
    {
      const std::lock_guard lock(mutex_);
      const auto found = unsent_.find(resource);
      if (found == unsent_.end() || --found->second.count > 0) return;
      next = std::move(found->second.after);
      unsent_.erase(found);
      any_.store(!unsent_.empty(), std::memory_order_release);
    }
    for (spi::task& each : next) each();
  }

  // Runs `work` now, or after the releases that were announced.
  template <class Work>
  void follow(const spi::resource_id& resource, Work&& work) {
    if (any_.load(std::memory_order_acquire)) {
      const std::lock_guard lock(mutex_);
      if (const auto found = unsent_.find(resource); found != unsent_.end()) {
        found->second.after.emplace_back(std::forward<Work>(work));
        return;
      }
    }
    work();
  }

 private:
  struct unsent {
    std::size_t count = 0;
    std::vector<spi::task> after;
  };

  std::mutex mutex_;
  std::map<spi::resource_id, unsent> unsent_;  // guarded by mutex_
  std::atomic<bool> any_{false};               // unsent_ has some
};

class acquisition;
class claim_runner;
class local_queue;
class hold;

using runner_list = std::list<std::shared_ptr<claim_runner>>;

// A lease to adopt: the claim that holds it now, and the fence of its last holder, which differs
// from the engine's where the lock was handed over inside a process.
struct adoption {
  spi::claim_id from;
  fence_token fence;
};

struct request {
  spi::resource_id resource;
  spi::mode mode = spi::mode::exclusive;
  spi::role role = spi::role::lock;
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
  lock_options lock;
  duration wait = forever;
  std::string payload;       // empty: the engine's
  std::uint64_t thread = 0;  // of a blocking caller, for the event self_wait; 0: none
  std::shared_ptr<core::local_queue>
      local_queue;                   // of the name, where the caller keeps one; else looked up
  std::optional<adoption> adopts{};  // set: nothing is queued, this lease is continued
};

// invalid, saying which limit a request breaks; whatever the engine.
result<void> check_limits(const request& request, const limits& limit);

struct engine_settings {
  std::string payload;  // "host:pid:program"
  limits limit{};
  bool hand_over_locally = true;  // threads of this process hand a lock over
  retry_policy retry{};           // of requests that have none of their own
  std::string where;              // for messages: "redis db:6379"; empty: the engine's name
  std::optional<duration> connect_timeout;  // as the user gave it
  std::shared_ptr<holdfast::observer> observer;
  std::shared_ptr<core::meter> meter{};  // null: nothing is counted
  holdfast::executor executor{};         // for user code; empty: the runtime's notifier
};

class engine : public std::enable_shared_from_this<engine> {
 public:
  engine(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> store,
         engine_settings settings);
  ~engine();
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;

  // Starts an acquisition. The completion may come before this returns. Dropping the handle does
  // not cancel.
  std::shared_ptr<acquisition> acquire(request request,
                                       spi::completion<std::shared_ptr<hold>> done);

  // Names of the locks that could not be released in time.
  using abandoned = std::vector<std::string>;
  void close(duration limit, spi::function<void(abandoned)> done);
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Claims that are not over yet: waiting, held or being left. Zero at rest; for tests and `close`.
  [[nodiscard]] std::size_t live_claims() const;

  [[nodiscard]] spi::runtime& runtime() const noexcept { return *runtime_; }
  [[nodiscard]] const std::shared_ptr<spi::runtime>& shared_runtime() const noexcept {
    return runtime_;
  }
  [[nodiscard]] spi::store& store() const noexcept { return *store_; }
  [[nodiscard]] const engine_settings& settings() const noexcept { return settings_; }

  // For the parts of the engine.
  [[nodiscard]] agenda& schedule() noexcept { return *agenda_; }
  [[nodiscard]] core::watchdog& watchdog() noexcept { return *watchdog_; }
  [[nodiscard]] attempt_window& window() noexcept { return *window_; }
  [[nodiscard]] departures& departing() noexcept { return departures_; }
  [[nodiscard]] std::shared_ptr<local_queue> local_queue_of(const spi::resource_id& resource);
  void forget_local_queue(const spi::resource_id& resource) noexcept;
  [[nodiscard]] spi::claim_id new_claim_id();
  [[nodiscard]] bool observed() const noexcept { return settings_.observer != nullptr; }
  void raise(event_kind kind, const spi::claim& claim, fence_token fence = {}, duration took = {},
             const error* cause = nullptr, loss_cause loss = loss_cause::none);
  // Null: nothing is counted.
  [[nodiscard]] core::meter* meter() const noexcept { return settings_.meter.get(); }
  // Runs user code on `where`, else on the executor; what it throws is swallowed and raised as an event.
  void deliver(spi::task work, const holdfast::executor& where = {});
  void enlist(const std::shared_ptr<claim_runner>& runner);
  void discharge(claim_runner& runner) noexcept;
  void answered() noexcept { pending_.fetch_sub(1, std::memory_order_relaxed); }
  // Records what an answer says about the engine's health; null: it answered. Raises the events at
  // the start and the end of an outage.
  void judge(const error* why);
  // True once it has answered this client.
  [[nodiscard]] bool heard() const noexcept { return heard_.load(std::memory_order_relaxed); }
  // How long an engine may be silent while a connection is being made.
  [[nodiscard]] duration reach_limit(bool tries) const noexcept;
  // Nothing may be sent any more: closed, or a fork of the process that opened it.
  [[nodiscard]] bool inert() const noexcept { return closed() || runtime_->forked(); }

 private:
  [[nodiscard]] result<void> check(const request& request) const;
  void finish_close();

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<spi::store> store_;
  const engine_settings settings_;
  ttl_census ttls_;                // of all runners_; changed under mutex_
  bool watched_by_store_ = false;  // set once, when it is made
  std::atomic<bool> heard_{false};
  std::atomic<bool> unreachable_{false};
  const std::shared_ptr<agenda> agenda_;
  const std::shared_ptr<attempt_window> window_;
  const std::shared_ptr<core::watchdog> watchdog_;
  std::atomic<bool> closed_{false};
  std::atomic<std::size_t> pending_{0};  // acquisitions without an answer
  departures departures_;

  mutable std::mutex mutex_;
  std::map<spi::resource_id, std::weak_ptr<local_queue>> local_queues_;  // guarded by mutex_
  runner_list runners_;                       // guarded by mutex_; in order of arrival
  spi::function<void(abandoned)> on_closed_;  // guarded by mutex_
};

}  // namespace holdfast::core
