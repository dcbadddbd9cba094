// The inside of metrics: its numbers, by engine.
#pragma once

#include "core/meter.hpp"

#include <holdfast/metrics.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast {

// Thread-safe.
struct metrics::state : std::enable_shared_from_this<metrics::state> {
  explicit state(metrics_options given) : options(std::move(given)) {}

  // For a new client.
  std::shared_ptr<core::meter> meter_for(const std::string& engine);
  [[nodiscard]] std::vector<const core::engine_numbers*> engines() const;

  const metrics_options options;

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<core::engine_numbers>> engines_;  // guarded by mutex_; never shrinks
};

}  // namespace holdfast
