// Those who wait for one resource: sequence numbers give the order, ids the way to them.
#include "stores/memory/waiting_line.hpp"

#include <utility>

namespace holdfast::memory {

waiter* waiting_line::at(const spi::claim_id& id) {
  const auto found = sequence_numbers_.find(id);
  return found == sequence_numbers_.end() ? nullptr : &line_.find(found->second)->value;
}

const waiter* waiting_line::find(const spi::claim_id& id) const {
  const auto found = sequence_numbers_.find(id);
  return found == sequence_numbers_.end() ? nullptr : &line_.find(found->second)->value;
}

std::size_t waiting_line::place(const spi::claim_id& id, std::size_t limit) const {
  std::size_t before = 0;
  for (const auto& [number, entry] : line_) {
    if (before == limit || entry.value.claim->id == id) break;
    ++before;
  }
  return before;
}

void waiting_line::join(waiter newcomer, spi::server_time lease_end) {
  const sequence_number number = next_++;
  sequence_numbers_.emplace(newcomer.claim->id, number);
  line_.put(number, lease_end, std::move(newcomer));
}

void waiting_line::refresh(const spi::claim_id& id, process_id process, spi::server_time now,
                           spi::server_time lease_end) {
  const auto found = sequence_numbers_.find(id);
  if (found == sequence_numbers_.end()) return;
  waiter& waiting = line_.find(found->second)->value;
  waiting.process = process;
  waiting.heard = now;
  line_.set_end(found->second, lease_end);
}

std::optional<waiter> waiting_line::remove(const spi::claim_id& id) {
  const auto found = sequence_numbers_.find(id);
  if (found == sequence_numbers_.end()) return std::nullopt;
  std::optional<waiter> removed = line_.take(found->second);
  sequence_numbers_.erase(found);
  return removed;
}

std::optional<waiter> waiting_line::take_dead(spi::server_time now) {
  auto dead = line_.take_ended(now);
  if (!dead) return std::nullopt;
  sequence_numbers_.erase(dead->second.value.claim->id);
  return std::move(dead->second.value);
}

void waiting_line::tell_free(const spi::claim_id& id) {
  waiter* told = at(id);
  if (told == nullptr) return;
  told->told_free = true;
  told_ = id;
}

void waiting_line::taken() {
  if (!told_) return;
  if (waiter* told = at(*told_)) told->told_free = false;
  told_.reset();
}

}  // namespace holdfast::memory
