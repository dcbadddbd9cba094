// The line before a lock: who of those in a list of children holds, and whom each of the others
// waits for. Pure: the whole grant rule of locks on ZooKeeper.
#pragma once

#include "stores/zookeeper/names.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace holdfast::zookeeper {

class line {
 public:
  // Children that are no claims are left out; what they are is told below.
  explicit line(const std::vector<std::string>& children);

  [[nodiscard]] const std::vector<claim_node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] bool has_semaphore() const noexcept { return semaphore_; }  // perhaps an empty one
  [[nodiscard]] bool has_latch() const noexcept { return latch_; }          // perhaps an old one

  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  [[nodiscard]] std::size_t find(const std::string& name) const;
  // By the claim's id; of two (a downgrade) the later.
  [[nodiscard]] std::size_t find(const spi::claim_id& id) const noexcept;

  // Whom the one at this place waits for; none: it holds. A reader waits for the last writer before
  // it, anybody else for the one right before.
  [[nodiscard]] std::size_t blocker_of(std::size_t place) const noexcept;
  // The blocker of one that would come last.
  [[nodiscard]] std::size_t blocker_of_next(bool excludes) const noexcept;
  [[nodiscard]] bool holds(std::size_t place) const noexcept { return blocker_of(place) == none; }
  // Somebody waits behind the one at this place, which holds.
  [[nodiscard]] bool wanted(std::size_t place) const noexcept;

 private:
  [[nodiscard]] std::size_t blocker(std::size_t place, bool excludes) const noexcept;

  std::vector<claim_node> nodes_;           // in order
  std::vector<std::size_t> last_excluder_;  // before each place, and before the end
  bool semaphore_ = false;
  bool latch_ = false;
};

}  // namespace holdfast::zookeeper
