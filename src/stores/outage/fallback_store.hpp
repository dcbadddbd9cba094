// degrade=local: while the engine is provably unreachable (its breaker is open), claims are granted by a
// lock of this process instead. That keeps the threads of this process apart and nobody else: it is for
// work that is only wasteful to do twice.
//
// Invariants:
//  D1  Contention is never degraded: the stand-in is asked only while the breaker is open, and what was
//      not answered is not asked of it before that.
//  D2  What it grants says so: granted::degraded is set and the fence is 0, which is no fence.
//  D3  When the engine answers again, every degraded hold is lost and everybody who waits at the
//      stand-in asks the engine. Nothing is upgraded.
//  D4  What the engine may still know of a claim that moved to the stand-in is left there once it
//      answers again, if its ttl has not ended it before.
#pragma once

#include "stores/forwarding_store.hpp"
#include "stores/outage/breaker_store.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <memory>
#include <vector>

namespace holdfast::outage {

// Thread-safe.
class fallback_store final : public stores::forwarding_store {
 public:
  // `local` must answer before its calls return and never be unreachable, as the memory store.
  fallback_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<breaker_store> engine,
                 std::shared_ptr<spi::store> local);
  ~fallback_store() override;
  fallback_store(const fallback_store&) = delete;
  fallback_store& operator=(const fallback_store&) = delete;

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
  bool report_to(spi::reach_sink sink) override;
  void close() noexcept override;

 private:
  class office;

  // Shared with completions, which may come when this store is gone.
  const std::shared_ptr<office> office_;
};

}  // namespace holdfast::outage
