// One resource's grant rule and fence.
#include "stores/memory/resource.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <string>

namespace holdfast::memory {

bool resource::free_for(const spi::claim& claim, spi::server_time now) const {
  if (is_blocked(now)) return false;
  switch (claim.mode) {
    case spi::mode::exclusive:
      return holders.empty();
    case spi::mode::shared:
      return !holders.exclusive();
    case spi::mode::permit:
      return holders.permits() + claim.permits <= claim.max;
  }
  return false;
}

bool resource::closed(spi::server_time now) const noexcept {
  return is_blocked(now) || holders.exclusive();
}

result<void> resource::accepts(const spi::claim& claim) const {
  const bool semaphore = claim.mode == spi::mode::permit;
  if (semaphore && (claim.permits == 0 || claim.permits > claim.max)) {
    return failure(errc::invalid,
                   std::to_string(claim.permits) + " permits of " + std::to_string(claim.max));
  }
  if (idle()) return {};
  const spi::claim& other =
      holders.empty() ? *line.begin()->second.value.claim : *holders.begin()->second.value.claim;
  if (semaphore != (other.mode == spi::mode::permit)) {
    return failure(errc::name_conflict, semaphore ? "the name is in use as a lock"
                                                  : "the name is in use as a semaphore");
  }
  if (semaphore && other.max != claim.max) {
    return failure(errc::conflict, "max is " + std::to_string(other.max) + " there and " +
                                       std::to_string(claim.max) + " here");
  }
  return {};
}

fence_token resource::next_fence(std::uint32_t block) {
  const fence_token fence(last_ + 1);
  if (!core::mutated(core::mutant::fence_in_second_call)) write_fence(fence, block);
  return fence;
}

void resource::write_fence(fence_token fence, std::uint32_t block) {
  last_ = std::max(last_, fence.value() + std::max(block, 1U) - 1);
}

void resource::block_until(spi::server_time until) {
  blocked_until_ = std::max(blocked_until_, until);
}

std::optional<spi::server_time> resource::next_end(spi::server_time now) const {
  if (is_blocked(now)) return blocked_until_;
  return holders.earliest_end();
}

}  // namespace holdfast::memory
