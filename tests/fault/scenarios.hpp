// What a client does while its n-th call breaks: each scenario checks the outcome that it must have
// regardless.
#pragma once

#include "fault/fault_world.hpp"

#include <string_view>

namespace holdfast::test {

struct scenario {
  std::string_view name;
  void (*run)(fault_world& world);
};

// Acquire a free lock, keep it for several renewals, release it; then others get it.
void alone(fault_world& world);
// Wait for a holder, be handed the lock, keep it, release it.
void waiting(fault_world& world);
// The same in the server's order, with other waiters before and behind.
void fair_line(fault_world& world);
// Hold while another waits; it gets the lock.
void holding(fault_world& world);
// Try a lock that is free, then one that is held.
void trying(fault_world& world);
// Give up a wait: by its deadline, and by cancellation.
void timing_out(fault_world& world);
void cancelling(fault_world& world);
// Cancel before anything was answered.
void cancelling_at_once(fault_world& world);
// Read-write: downgrade lets a reader in, an upgrade beside it fails, alone it succeeds.
void changing(fault_world& world);
// Two of three permits, and somebody who waits for them.
void permits(fault_world& world);
// Close the client while it holds and waits.
void closing(fault_world& world);
// Detach a lease and adopt it again, while another waits.
void handing_off(fault_world& world);
// Set a latch and count it down, from two clients.
void counting_down(fault_world& world);

}  // namespace holdfast::test
