// The watchdog: one per client. It collects claims that are due for renewal, holders and waiters
// alike, and sends them to the engine in batches. It keeps no list of its own that an error could
// empty: every claim asks again by the agenda, so renewal goes on whatever was answered.
//
// Thread-safe.
#pragma once

#include "core/agenda.hpp"
#include "core/attempt_window.hpp"
#include "core/limits.hpp"
#include "core/meter.hpp"

#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace holdfast::core {

class claim_runner;

class watchdog : public std::enable_shared_from_this<watchdog> {
 public:
  watchdog(spi::runtime& runtime, std::shared_ptr<spi::store> store,
           std::shared_ptr<agenda> schedule, std::shared_ptr<attempt_window> window,
           const limits& limit);

  // Set once, before anything is collected: receives how long renewals take.
  void report_to(std::shared_ptr<meter> meter) noexcept { meter_ = std::move(meter); }

  // The runner's claim joins the next batch. Its answer goes to claim_runner::refreshed().
  void collect(std::shared_ptr<claim_runner> runner);

  // Sends what was collected; called when the agenda has swept.
  void flush();

 private:
  [[nodiscard]] duration time_for(const claim_runner& runner) const;
  void send(std::vector<std::shared_ptr<claim_runner>> runners, time_point now);

  spi::runtime& runtime_;
  const std::shared_ptr<spi::store> store_;
  const std::shared_ptr<agenda> agenda_;
  const std::shared_ptr<attempt_window> window_;  // learns how long renewals take
  const limits limit_;
  std::shared_ptr<meter> meter_;

  std::mutex mutex_;
  std::vector<std::shared_ptr<claim_runner>> collected_;  // guarded by mutex_
  bool flush_posted_ = false;                             // guarded by mutex_
};

}  // namespace holdfast::core
