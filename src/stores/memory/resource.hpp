// One resource: who holds it, who waits, its fence, and the rule by which a claim may be granted
// beside those who hold.
#pragma once

#include "stores/memory/holders.hpp"
#include "stores/memory/waiting_line.hpp"

#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace holdfast::memory {

// Not thread-safe.
class resource {
 public:
  resource(spi::resource_id id, std::uint64_t last_fence) : id_(std::move(id)), last_(last_fence) {}

  [[nodiscard]] const spi::resource_id& id() const noexcept { return id_; }

  memory::holders holders;
  waiting_line line;

  // The five lines that decide: exclusive wants nobody else, shared nobody exclusive, permits must
  // suffice; and after an abnormal end the resource may be blocked for a while. Who waits is not
  // looked at.
  [[nodiscard]] bool free_for(const spi::claim& claim, spi::server_time now) const;

  // Nobody at all can be granted now, so that who waits need not be looked at.
  [[nodiscard]] bool closed(spi::server_time now) const noexcept;

  // ok, or why this claim cannot be on this resource now: name_conflict (a lock is no semaphore),
  // conflict (another max), invalid (more permits than there are).
  [[nodiscard]] result<void> accepts(const spi::claim& claim) const;

  // Neither held nor waited for; only the fence and perhaps a lock delay are left.
  [[nodiscard]] bool idle() const noexcept { return holders.empty() && line.empty(); }

  // Reserves `block` numbers and answers the first.
  fence_token next_fence(std::uint32_t block);
  [[nodiscard]] std::uint64_t last_fence() const noexcept { return last_; }
  // No later fence is below fence + block.
  void write_fence(fence_token fence, std::uint32_t block);

  void block_until(spi::server_time until);
  [[nodiscard]] bool is_blocked(spi::server_time now) const noexcept {
    return blocked_until_ > now;
  }
  [[nodiscard]] std::optional<duration> blocked_for(spi::server_time now) const noexcept {
    return is_blocked(now) ? std::optional(blocked_until_ - now) : std::nullopt;
  }

  // An offer made then was not taken up. Who has not been heard since is passed over until it is,
  // so that the whole line costs one offer, however many in it are dead or frozen.
  void silence(spi::server_time offered) { silent_since_ = std::max(silent_since_, offered); }
  [[nodiscard]] bool is_silent(const waiter& waiting) const noexcept {
    return waiting.heard <= silent_since_;
  }

  // When something ends that could make it free: a hold, an offer or the lock delay.
  [[nodiscard]] std::optional<spi::server_time> next_end(spi::server_time now) const;

 private:
  spi::resource_id id_;
  std::uint64_t last_;
  spi::server_time blocked_until_ = spi::server_time::min();
  spi::server_time silent_since_ = spi::server_time::min();
};

}  // namespace holdfast::memory
