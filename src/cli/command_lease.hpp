// What run, elect and multi run hold while their command runs: one lease, or several as one.
#pragma once

#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>

#include <stop_token>
#include <string>
#include <variant>
#include <vector>

namespace holdfast::cli {

// Movable; const members from any thread while it stays in place.
class command_lease {
 public:
  explicit command_lease(lease one) noexcept : held_(std::move(one)) {}
  explicit command_lease(multi_lease several) noexcept : held_(std::move(several)) {}

  [[nodiscard]] time_point valid_until() const noexcept;
  // The shortest that the engine gave.
  [[nodiscard]] duration ttl() const noexcept;
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] fence_token fence() const noexcept;  // of the first
  result<void> release();

  // HOLDFAST_NAME, HOLDFAST_FENCE, HOLDFAST_CLAIM, each with a line per lock.
  [[nodiscard]] std::vector<std::string> variables() const;

 private:
  [[nodiscard]] std::vector<const lease*> leases() const;

  std::variant<lease, multi_lease> held_;
};

}  // namespace holdfast::cli
