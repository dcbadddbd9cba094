// degrade=local: while the engine is provably unreachable (its breaker is open), claims are granted
// by a lock of this process instead. That excludes only the threads of this process from each
// other: it is for work that is merely wasteful to do twice.
//
// Invariants:
//  D1  Contention is never degraded: the local fallback is asked only while the breaker is open,
//      and never before that for a request that was not answered.
//  D2  What it grants says so: granted::degraded is set and the fence is 0, which is no fence.
//  D3  When the engine answers again, every degraded hold is lost and every waiter of the
//      local fallback asks the engine. No hold is upgraded.
//  D4  What the engine may still know of a claim that moved to the local fallback is left there once it
//      answers again, if its ttl has not ended it before.
#pragma once

#include "stores/degraded/breaker_store.hpp"
#include "stores/forwarding_store.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace holdfast::degraded {

// Thread-safe; no lock is held while a store or a claim is called. Made by make_shared: completions keep it.
class fallback_store final : public stores::forwarding_store,
                             public std::enable_shared_from_this<fallback_store> {
 public:
  // `local` must answer before its calls return and never be unreachable, like the memory store.
  fallback_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<breaker_store> engine,
                 std::shared_ptr<spi::store> local);

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void watch(spi::claim_ptr claim, const spi::blocked& seen, const spi::op_context& context,
             spi::completion<spi::armed> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  // Before any verb: D3 begins with the report that the engine is back.
  bool report_to(spi::reach_sink sink) override;
  void close() noexcept override;

 private:
  class mark;

  // A claim at the local fallback.
  struct degraded {
    spi::claim_ptr claim;
    std::shared_ptr<mark> wakeup;
    bool known = false;  // to the engine, perhaps
  };

  void ask_engine(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                  const spi::op_context& context, spi::completion<spi::outcome> done);
  void ask_here(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                const spi::op_context& context, spi::completion<spi::outcome> done);
  void answered_here(const spi::claim_ptr& claim, const std::shared_ptr<spi::wakeup>& wakeup,
                     const spi::op_context& context, result<spi::outcome> answer,
                     spi::completion<spi::outcome> done);
  void hand_back();
  void forget_here(const spi::claim_ptr& claim);

  // What is known of claims.
  [[nodiscard]] bool here(const spi::claim_id& id) const;
  void granted_here(const spi::claim_id& id);
  std::optional<degraded> take(const spi::claim_id& id);
  void settled(const spi::claim_id& id);
  void leave_later(const spi::claim_ptr& claim);

  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<breaker_store> engine_;
  const std::shared_ptr<spi::store> local_;

  mutable std::mutex mutex_;
  std::map<spi::claim_id, degraded> here_;  // guarded by mutex_
  // The engine was asked for them and may have them waiting.
  std::set<spi::claim_id> asked_;  // guarded by mutex_
  // To be left at the engine when it answers again, unless that is after the given time.
  std::vector<std::pair<spi::claim_ptr, time_point>> remains_;  // guarded by mutex_
};

}  // namespace holdfast::degraded
