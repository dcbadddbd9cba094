// One sale: its processes, from their start to the count of what they left behind.
#pragma once

#include "cli/arguments.hpp"
#include "cli/connection.hpp"
#include "cli/signal_inbox.hpp"

#include <holdfast/clock.hpp>

#include <cstdint>
#include <string>

namespace holdfast::cli {

struct sale_result {
  std::string lock;
  std::int64_t stock = 0;  // at the start
  std::int64_t left = 0;
  std::int64_t orders = 0;
  std::int64_t too_busy = 0;
  std::int64_t sold_out = 0;
  std::int64_t failed = 0;
  duration p50{};
  duration p99{};
  double per_second = 0;
  std::string trouble{};  // of the engine, if any
  int ended_by = 0;       // a signal that ended it early

  [[nodiscard]] std::int64_t sold() const { return stock - left; }
  [[nodiscard]] std::int64_t oversold() const { return orders - sold(); }
  // Every item that left the shelf has one order, and everybody was served or sent away.
  [[nodiscard]] bool exact(const sale_arguments& how) const;
};

// Single-threaded callers only: it forks. `folder`: where the stock lies, one per sale.
sale_result hold_one_sale(const context& context, const address& to, const sale_arguments& how,
                          const std::string& lock, const std::string& folder, signal_inbox& inbox);

}  // namespace holdfast::cli
