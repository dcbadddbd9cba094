// What the library tells while the program runs: lines on stderr, as --log-level asks, and the
// reason of the last loss, for the line that ends the program.
#pragma once

#include "cli/arguments.hpp"

#include <holdfast/observer.hpp>

#include <mutex>
#include <optional>

namespace holdfast::cli {

// Thread-safe.
class log : public observer {
 public:
  explicit log(log_level level) : level_(level) {}

  void on_event(const event& event) override;

  // Why a lease was lost; none if none was.
  [[nodiscard]] std::optional<error> loss() const;

 private:
  const log_level level_;
  mutable std::mutex mutex_;
  std::optional<error> loss_;  // guarded by mutex_
};

}  // namespace holdfast::cli
