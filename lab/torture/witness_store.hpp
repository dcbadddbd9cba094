// The store of a torture's client, around the engine's own: records when a fair claim was told that
// it is in the queue. A claim that asks after that must not be granted before it, and the checker
// needs no margin.
#pragma once

#include "stores/forwarding_store.hpp"
#include "torture/shared_files.hpp"

#include <holdfast/clock.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::torture {

// Thread-safe. The history must outlive it.
class witness_store final : public stores::forwarding_store {
 public:
  witness_store(std::shared_ptr<spi::store> inner, time_point start, recorder& history)
      : forwarding_store(std::move(inner)), start_(start), history_(history) {}

  // The next fair claim that this thread sends belongs to this record. A caller that acquires sends
  // its first attempt itself, before it does anything else.
  void expect(const sim::record& asked);

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;

 private:
  std::optional<sim::record> take_expected();

  const time_point start_;
  recorder& history_;
  std::mutex mutex_;
  std::map<std::thread::id, sim::record> expected_;  // guarded by mutex_
};

}  // namespace holdfast::torture
