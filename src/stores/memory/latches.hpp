// Count-down latches: set, down, read. A latch lives a while after its last change, also at zero;
// then it is unset.
#pragma once

#include "stores/memory/expiring_map.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <variant>

namespace holdfast::memory {

// Not thread-safe; the time is an argument.
class latches {
 public:
  // The greatest count that can be set.
  static constexpr std::uint32_t max_count = 1'000'000;

  struct settings {
    duration life;      // where a change names none
    duration remember;  // ids of an earlier count are known this much longer
  };
  explicit latches(settings limits) : settings_(limits) {}

  struct changed {
    spi::latch_state state;
    bool counted = false;  // false: a repetition, or a down at zero
  };
  // set: conflict unless unset or zero. down: not_held if unset; never below zero. Each id counts
  // once; a repetition answers the count as it is now.
  result<changed> change(spi::server_time now, const spi::resource_id& resource,
                         const spi::latch_change& change);
  [[nodiscard]] spi::latch_state read(spi::server_time now, const spi::resource_id& resource);
  [[nodiscard]] bool alive(spi::server_time now, const spi::resource_id& resource);
  [[nodiscard]] std::size_t size() const noexcept { return latches_.size(); }

 private:
  struct latch {
    std::uint32_t count = 0;
    std::optional<spi::claim_id> set_by;
    std::set<spi::claim_id> counted;  // of this count; never more than was set
    // Of earlier counts, and of downs at zero: a late repetition must not count on the next one.
    expiring_map<spi::claim_id, std::monostate> former;
  };

  result<changed> set(spi::server_time now, latch* found, const spi::resource_id& resource,
                      const spi::latch_change& change);
  changed down(spi::server_time now, latch& found, const spi::latch_change& change);

  settings settings_;
  expiring_map<spi::resource_id, latch> latches_;
};

}  // namespace holdfast::memory
