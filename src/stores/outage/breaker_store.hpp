// A circuit breaker around a store: when the engine did not answer so many times in a row, new claims
// are refused at once instead of waiting for it, until it answers again.
//
// Only attempts are refused. Renewals, releases and all other verbs go to the engine whatever the
// state, since they keep promises that were made; their silence counts too. What a store may answer
// without its engine (a renewal by an earlier proof, a claim that it does not know) is no sign of life.
// An engine may answer and yet have no usable answer for one claim (its row is locked by a stranger, its
// quorum is too young). So before the breaker opens, and every now and then while it is open, the engine
// is asked for nothing in particular: a look at a name that nobody uses. What opens it and what closes
// it is the same question.
#pragma once

#include "stores/forwarding_store.hpp"
#include "stores/outage/breaker.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::outage {

struct breaker_settings {
  std::uint32_t failures = 3;                     // in a row, then the engine is looked at
  duration pause = std::chrono::seconds(1);       // between looks: from half of it to all of it
  duration look_limit = std::chrono::seconds(2);  // how long one look may take
};

// Thread-safe. Reports are made under no lock, by whatever thread brought the answer.
class breaker_store final : public stores::forwarding_store {
 public:
  breaker_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> inner,
                const breaker_settings& settings);
  ~breaker_store() override;
  breaker_store(const breaker_store&) = delete;
  breaker_store& operator=(const breaker_store&) = delete;

  // The engine is taken for unreachable.
  [[nodiscard]] bool open() const noexcept;

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  bool report_to(spi::reach_sink sink) override;
  void close() noexcept override;

 private:
  class lookout;

  template <class T>
  spi::completion<T> judged(spi::completion<T> done) const;

  // Shared with completions, which may come when this store is gone.
  const std::shared_ptr<lookout> lookout_;
};

}  // namespace holdfast::outage
