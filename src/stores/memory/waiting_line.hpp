// Those who wait for one resource, in the order in which they came. A waiter keeps its place while
// it lives; its own short lease says so.
#pragma once

#include "stores/memory/expiring_map.hpp"
#include "stores/memory/rules.hpp"

#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace holdfast::memory {

struct waiter {
  spi::claim_ptr claim;
  process_id process = 0;
  spi::server_time since{};
  spi::server_time heard{};  // its last word: an attempt or a re-check of its own
  bool told_free = false;    // since the resource was last taken
};

// Not thread-safe. The end of an entry is the end of the waiter's lease.
class waiting_line {
 public:
  using sequence_number = std::uint64_t;

  [[nodiscard]] bool empty() const noexcept { return line_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return line_.size(); }
  // In order, as pairs of sequence number and entry.
  [[nodiscard]] auto begin() const noexcept { return line_.begin(); }
  [[nodiscard]] auto end() const noexcept { return line_.end(); }
  [[nodiscard]] auto rbegin() const noexcept { return line_.rbegin(); }
  [[nodiscard]] auto rend() const noexcept { return line_.rend(); }

  [[nodiscard]] const waiter* find(const spi::claim_id& id) const;
  // How many stand before it; not counted beyond the limit.
  [[nodiscard]] std::size_t place(const spi::claim_id& id, std::size_t limit) const;

  void join(waiter newcomer, spi::server_time lease_end);
  void refresh(const spi::claim_id& id, process_id process, spi::server_time now,
               spi::server_time lease_end);
  std::optional<waiter> remove(const spi::claim_id& id);
  std::optional<waiter> take_dead(spi::server_time now);

  void tell_free(const spi::claim_id& id);
  // The resource was taken: who was told that it is free is told again when it is.
  void taken();

 private:
  waiter* at(const spi::claim_id& id);

  expiring_map<sequence_number, waiter> line_;
  std::map<spi::claim_id, sequence_number> sequence_numbers_;
  sequence_number next_ = 1;
  std::optional<spi::claim_id> told_;  // only one is told at a time
};

}  // namespace holdfast::memory
