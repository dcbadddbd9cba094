// The granted claims of one resource: bookkeeping of the sums beside the entries.
#include "stores/memory/holders.hpp"

#include "core/mutant.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::memory {

void holders::count(const hold& granted) {
  if (granted.mode == spi::mode::exclusive) ++exclusive_;
  if (granted.mode == spi::mode::permit) permits_ += granted.claim->permits;
  if (!granted.told) ++untold_;
}

void holders::discount(const hold& granted) {
  if (granted.mode == spi::mode::exclusive) --exclusive_;
  if (granted.mode == spi::mode::permit) {
    std::uint64_t returned = granted.claim->permits;
    if (core::mutated(core::mutant::permit_returned_twice)) returned *= 2;
    permits_ -= std::min(permits_, returned);
  }
  if (!granted.told) --untold_;
}

void holders::add(hold granted, spi::server_time end) {
  const spi::claim_id id = granted.claim->id;
  remove(id);
  count(granted);
  held_.put(id, end, std::move(granted));
}

std::optional<hold> holders::remove(const spi::claim_id& id) {
  std::optional<hold> removed = held_.take(id);
  if (removed) discount(*removed);
  return removed;
}

std::optional<std::pair<hold, spi::server_time>> holders::take_ended(spi::server_time now) {
  auto ended = held_.take_ended(now);
  if (!ended) return std::nullopt;
  discount(ended->second.value);
  return std::pair(std::move(ended->second.value), ended->second.end);
}

void holders::set_process(const spi::claim_id& id, process_id process) {
  if (auto* found = held_.find(id)) found->value.process = process;
}

void holders::complete(const spi::claim_id& id) {
  if (auto* found = held_.find(id)) found->value.offer = false;
}

void holders::revoke(const spi::claim_id& id) {
  if (auto* found = held_.find(id)) found->value.revoked = true;
}

void holders::set_mode(const spi::claim_id& id, spi::mode mode, fence_token fence) {
  auto* found = held_.find(id);
  if (found == nullptr) return;
  discount(found->value);
  found->value.mode = mode;
  found->value.fence = fence;
  count(found->value);
}

void holders::raise(const spi::claim_id& id, fence_token fence) {
  if (auto* found = held_.find(id)) found->value.fence = std::max(found->value.fence, fence);
}

void holders::mark_told(const spi::claim_id& id) {
  auto* found = held_.find(id);
  if (found == nullptr || found->value.told) return;
  found->value.told = true;
  --untold_;
}

void holders::tell_wanted(effects& out) {
  if (untold_ == 0) return;
  for (const auto& [id, each] : held_) {
    if (each.value.told) continue;
    out.pushes.push_back({push::kind::wanted, id, each.value.process, std::nullopt, {}});
    mark_told(id);
  }
}

}  // namespace holdfast::memory
