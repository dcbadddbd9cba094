// The granted claims of one resource, and the sums that the grant rules ask for.
#pragma once

#include "stores/memory/expiring_map.hpp"
#include "stores/memory/rules.hpp"

#include <holdfast/fence.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace holdfast::memory {

struct hold {
  spi::claim_ptr claim;
  process_id process = 0;
  spi::mode mode = spi::mode::exclusive;  // change() makes it differ from the claim's
  fence_token fence;
  spi::server_time since{};
  bool offer = false;    // pushed and not yet heard of
  bool told = false;     // that somebody waits
  bool revoked = false;  // not renewed any more
};

// Not thread-safe. The end of an entry is the end of its hold.
class holders {
 public:
  using entry = expiring_map<spi::claim_id, hold>::entry;

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return held_.size(); }
  [[nodiscard]] auto begin() const noexcept { return held_.begin(); }
  [[nodiscard]] auto end() const noexcept { return held_.end(); }
  [[nodiscard]] bool exclusive() const noexcept { return exclusive_ > 0; }
  [[nodiscard]] std::uint64_t permits() const noexcept { return permits_; }
  [[nodiscard]] std::optional<spi::server_time> earliest_end() const {
    return held_.earliest_end();
  }

  [[nodiscard]] const entry* find(const spi::claim_id& id) const { return held_.find(id); }

  void add(hold granted, spi::server_time end);
  std::optional<hold> remove(const spi::claim_id& id);
  std::optional<std::pair<hold, spi::server_time>> take_ended(spi::server_time now);

  void set_end(const spi::claim_id& id, spi::server_time end) { held_.set_end(id, end); }
  void set_process(const spi::claim_id& id, process_id process);
  // The offer was taken up.
  void complete(const spi::claim_id& id);
  void revoke(const spi::claim_id& id);
  void set_mode(const spi::claim_id& id, spi::mode mode, fence_token fence);

  void raise(const spi::claim_id& id, fence_token fence);

  void mark_told(const spi::claim_id& id);
  // Tells everyone who was not told yet, once per hold, that somebody waits.
  void tell_wanted(effects& out);

 private:
  void count(const hold& granted);
  void discount(const hold& granted);

  expiring_map<spi::claim_id, hold> held_;
  std::size_t exclusive_ = 0;
  std::uint64_t permits_ = 0;
  std::size_t untold_ = 0;
};

}  // namespace holdfast::memory
