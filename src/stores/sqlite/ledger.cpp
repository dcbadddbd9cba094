// The verbs of a claim: attempt, leave, look, change, revoke.
#include "stores/sqlite/ledger.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::sqlite {

namespace {

constexpr const char* revoked_text = "revoked: not renewed any more";

result<void> accepts(const resource_row& at, const spi::claim& claim) {
  if (at.kind == kind::latch) {
    return failure(errc::name_conflict, "the name is in use as a latch");
  }
  if (at.unused()) return {};
  const bool semaphore = claim.mode == spi::mode::permit;
  if (semaphore != (at.kind == kind::semaphore)) {
    return failure(errc::name_conflict, semaphore ? "the name is in use as a lock"
                                                  : "the name is in use as a semaphore");
  }
  if (semaphore && at.max != claim.max) {
    return failure(errc::conflict, "max is " + std::to_string(at.max) + " there and " +
                                       std::to_string(claim.max) + " here");
  }
  if (std::max(at.holders, at.waiting) >= ledger_limits::claim_limit) {
    return failure(errc::overloaded, "claims on one name");
  }
  return {};
}

void begin_use(resource_row& at, const spi::claim& claim) {
  const bool semaphore = claim.mode == spi::mode::permit;
  at.kind = semaphore ? kind::semaphore : kind::lock;
  at.max = semaphore ? claim.max : 0;
}

// 0, or more than there are.
bool impossible(const spi::claim& claim) {
  return claim.mode == spi::mode::permit && (claim.permits == 0 || claim.permits > claim.max);
}

claim_row row_of(const moment& step, const spi::claim& claim, std::int64_t place) {
  claim_row row;
  row.id = claim.id;
  row.place = place;
  row.client = step.self;
  row.since = step.now;
  row.ttl = claim.ttl.count();
  row.lock_delay = claim.lock_delay.count();
  row.permits = claim.permits;
  row.fence_block = claim.fence_block;
  row.mode = claim.mode;
  row.fair = claim.fair;
  row.renewed = claim.renewed;
  row.payload = claim.payload;
  return row;
}

spi::holder described(const moment& step, const claim_row& row) {
  spi::holder holder;
  holder.claim = spi::public_id(row.id);
  holder.mode = row.mode;
  holder.permits = row.permits;
  holder.fence = fence_token(row.fence);
  if (row.ends != never) holder.remaining = duration(row.ends - step.now);
  holder.held_for = duration(step.now - row.since);
  holder.payload = row.payload;
  return holder;
}

}  // namespace

result<spi::outcome> ledger::attempt(const moment& step, const spi::claim& claim,
                                     std::int64_t& place) {
  const std::string key = key_of(claim.resource);
  if (impossible(claim)) {
    settle(step, key);  // as every attempt does
    return failure(errc::invalid,
                   std::to_string(claim.permits) + " permits of " + std::to_string(claim.max));
  }
  auto found = resource_rows_.find(key);
  resource_row at = found ? std::move(*found) : resource_rows_.make(key, step.now);
  end_latch(step, at);
  if (place != 0) {
    promote(step, at);
    if (auto row = resource_rows_.holder(at, place, claim.id)) {
      complete(step, at, *row);
      return stand(step, at, *row, standing::holds);
    }
    if (const auto row = resource_rows_.waiter(at, place, claim.id)) {
      return stand(step, at, *row, standing::waits);
    }
    place = 0;  // it was taken away: it queues again
  } else {
    promote(step, at);
  }
  if (auto accepted = accepts(at, claim); !accepted) {
    save(step, at);
    return tl::unexpected(std::move(accepted.error()));
  }
  return place_claim(step, at, claim, place);
}

// A newcomer: granted, queued, or turned away.
spi::outcome ledger::place_claim(const moment& step, resource_row& at, const spi::claim& claim,
                                 std::int64_t& place) {
  if (at.unused()) begin_use(at, claim);
  claim_row row = row_of(step, claim, static_cast<std::int64_t>(at.last + 1));
  if (may_pass(step, at, claim) && free_for(step, at, row)) {
    place = row.place;
    return stand(step, at, grant(step, at, std::move(row)), standing::holds);
  }
  if (!claim.queued) {
    spi::outcome answer = blocked_at(step, at, row, false);
    save(step, at);
    return answer;
  }
  at.last += 1;
  place = row.place;
  resource_rows_.add_waiter(at, row);
  note(step, at, spi::event_kind::queued, row, false);
  if (at.waiting == 1) tell_wanted(step, at);
  // With one more in line, one who was only told that it is free may now be handed it.
  promote(step, at);
  if (const auto held = resource_rows_.holder(at, place, row.id)) {
    return stand(step, at, *held, standing::holds);
  }
  return stand(step, at, row, standing::waits);
}

spi::outcome ledger::stand(const moment& step, resource_row& at, const claim_row& row,
                           standing where) {
  spi::outcome answer;
  if (where == standing::holds) {
    answer = granted_to(step, at, row);
  } else {
    answer = blocked_at(step, at, row, true);
  }
  save(step, at);
  return answer;
}

std::optional<spi::granted> ledger::take_at_once(const moment& step, const spi::claim& claim,
                                                 std::int64_t& place) {
  if (place != 0 || impossible(claim)) return std::nullopt;
  const std::string key = key_of(claim.resource);
  const resource_row* known = resource_rows_.look(key);
  if (known == nullptr || !known->unused() || known->blocked_until > step.now) return std::nullopt;
  resource_row at = resource_rows_.recall(key);
  begin_use(at, claim);
  const claim_row row =
      grant(step, at, row_of(step, claim, static_cast<std::int64_t>(at.last + 1)));
  const spi::granted answer = granted_to(step, at, row);
  if (!resource_rows_.exchange(std::move(at))) return std::nullopt;
  place = row.place;
  return answer;
}

std::optional<spi::departure> ledger::give_at_once(const moment& step, const spi::claim& claim,
                                                   std::int64_t place) {
  const std::string key = key_of(claim.resource);
  const resource_row* known = resource_rows_.look(key);
  if (known == nullptr || known->next_end <= step.now) return std::nullopt;
  if (!known->inline_holder || known->inline_holder->place != place ||
      known->inline_holder->id != claim.id) {
    return std::nullopt;
  }
  resource_row at = resource_rows_.recall(key);
  const claim_row held = std::move(*at.inline_holder);
  resource_rows_.remove_holder(at, held);
  if (!resource_rows_.exchange(std::move(at))) return std::nullopt;
  return spi::departure::was_holder;
}

spi::departure ledger::leave(const moment& step, const spi::claim& claim, std::int64_t place) {
  if (place == 0) return spi::departure::gone;
  auto found = resource_rows_.find(key_of(claim.resource));
  if (!found) return spi::departure::gone;
  resource_row& at = *found;
  drop_ended(step, at);
  spi::departure left = spi::departure::gone;
  bool was_head = false;
  if (const auto held = resource_rows_.holder(at, place, claim.id)) {
    resource_rows_.remove_holder(at, *held);
    note(step, at, spi::event_kind::released, *held, true);
    left = spi::departure::was_holder;
  } else if (const auto waited = resource_rows_.waiter(at, place, claim.id)) {
    was_head = !resource_rows_.before(at, place);
    resource_rows_.remove_waiter(at, *waited);
    note(step, at, spi::event_kind::withdrawn, *waited, false);
    left = spi::departure::was_waiting;
  }
  const std::uint32_t waiting = at.waiting;
  promote(step, at);
  // Invariant 5: who is head now watched the one who left.
  if (was_head && waiting > 0 && at.waiting == waiting) wake_head(step, at);
  save(step, at);
  return left;
}

spi::renewal ledger::look(const moment& step, const spi::claim& claim, std::int64_t place,
                          std::optional<std::int64_t>& behind) {
  spi::renewal answer;
  answer.at = spi::server_time(duration(step.now));
  answer.state = spi::hold_state::lost;
  auto at = place == 0 ? std::nullopt : resource_rows_.find(key_of(claim.resource));
  if (!at) return answer;
  if (const auto held = resource_rows_.holder(*at, place, claim.id)) {
    if (held->ends <= step.now) return answer;
    const bool counts_anew = held->renewed && !held->revoked;
    answer.state = counts_anew ? spi::hold_state::renewed : spi::hold_state::held;
    answer.grant = granted_to(step, *at, *held);
    // The message may have been lost.
    if (held->revoked) tell_gone(step, *held, revoked_text, duration(held->ends - step.now));
    note(step, *at, spi::event_kind::renewed, *held, true);
    address_news(step, *at);
  } else if (resource_rows_.waiter(*at, place, claim.id)) {
    answer.state = spi::hold_state::waiting;
    answer.recheck_after = ledger_limits::recheck;
    if (at->exclusive > 0 && at->next_end > step.now) {
      const auto before = resource_rows_.before(*at, place);
      if (before && !absent(step, *before)) behind = before->client;
    }
  }
  return answer;
}

std::optional<spi::granted> ledger::take_up(const moment& step, const spi::claim& claim,
                                            std::int64_t place) {
  auto at = place == 0 ? std::nullopt : resource_rows_.find(key_of(claim.resource));
  if (!at) return std::nullopt;
  auto held = resource_rows_.holder(*at, place, claim.id);
  if (!held || held->ends <= step.now) return std::nullopt;
  complete(step, *at, *held);
  save(step, *at);
  return granted_to(step, *at, *held);
}

result<spi::granted> ledger::change(const moment& step, const spi::claim& claim, std::int64_t place,
                                    spi::mode to) {
  auto found = resource_rows_.find(key_of(claim.resource));
  // Who may come in comes in first: an upgrade does not pass a reader that could be granted.
  if (found) promote(step, *found);
  auto held = found ? resource_rows_.holder(*found, place, claim.id) : std::nullopt;
  if (held) complete(step, *found, *held);
  if (found) save(step, *found);
  if (!held) return failure(errc::lost, "not held any more");
  resource_row& at = *found;
  if (to == spi::mode::permit || held->mode == spi::mode::permit) {
    return failure(errc::invalid, "a semaphore's permits have no other mode");
  }
  if (held->mode == to) return granted_to(step, at, *held);
  // An upgrade never waits: two readers that did would wait for each other.
  if (to == spi::mode::exclusive && at.holders > 1) drop_dead_holders(step, at);
  if (to == spi::mode::exclusive && (at.holders > 1 || at.blocked_until > step.now)) {
    save(step, at);
    step.out.blockers = resource_rows_.holding_clients(at, ledger_limits::told_limit);
    return failure(errc::would_deadlock, at.holders > 1 ? "other readers hold it"
                                                        : "another reader's hold ended abnormally");
  }
  claim_row row = *held;
  row.mode = to;
  row.fence = next_fence(at, row.fence_block);
  resource_rows_.change_holder(at, *held, row);
  note(step, at, spi::event_kind::granted, row, true);
  promote(step, at);
  const spi::granted answer = granted_to(step, at, row);
  save(step, at);
  return answer;
}

result<spi::granted> ledger::transfer(const moment& step, const spi::claim_id& from,
                                      const spi::claim& to, std::int64_t& place) {
  auto found = resource_rows_.find(key_of(to.resource));
  const auto refused = failure(errc::not_held, "not held any more");
  if (!found || found->kind == kind::latch) return refused;
  resource_row& at = *found;
  // Not promoted yet: one that waits must not be granted on the way to another.
  drop_ended(step, at);
  std::optional<claim_row> held = holder_with(at, to.id);
  if (!held) held = holder_with(at, from);
  if (!held || held->revoked) {
    promote(step, at);
    save(step, at);
    return refused;
  }
  claim_row row = *held;
  row.id = to.id;
  row.client = to.detached ? nobody : step.self;
  row.ttl = to.ttl.count();
  row.renewed = to.renewed;
  row.offer = false;
  row.ends = to.renewed ? never : after(step.now, to.ttl);
  row.payload = to.payload;
  if (held->id != to.id) note(step, at, spi::event_kind::released, *held, true);
  resource_rows_.change_holder(at, *held, row);
  note(step, at, held->id == to.id ? spi::event_kind::renewed : spi::event_kind::granted, row,
       true);
  place = row.place;
  promote(step, at);
  // Invariant 5: the head watches another client now, or none but the clock.
  if (at.waiting > 0) wake_head(step, at);
  const spi::granted answer = granted_to(step, at, row);
  save(step, at);
  return answer;
}

std::optional<claim_row> ledger::holder_with(const resource_row& at, const spi::claim_id& id) {
  for (claim_row& row : resource_rows_.all_holders(at, ledger_limits::holder_limit)) {
    if (row.id == id) return std::move(row);
  }
  return std::nullopt;
}

std::int64_t ledger::place_of_holder(const spi::resource_id& resource, const spi::claim_id& id) {
  const auto at = resource_rows_.find(key_of(resource));
  const auto held = at ? holder_with(*at, id) : std::nullopt;
  return held ? held->place : 0;
}

std::vector<spi::holder> ledger::revoke(const moment& step, const spi::resource_id& resource,
                                        spi::revocation how, const std::string& claim) {
  auto found = resource_rows_.find(key_of(resource));
  if (!found || found->kind == kind::latch) return {};
  resource_row& at = *found;
  promote(step, at);
  drop_dead_holders(step, at);
  std::vector<spi::holder> taken;
  for (const claim_row& row : resource_rows_.all_holders(at, ledger_limits::holder_limit)) {
    spi::holder holder = described(step, row);
    if (!claim.empty() && claim != holder.claim) continue;
    taken.push_back(std::move(holder));
    if (how == spi::revocation::force) {
      resource_rows_.remove_holder(at, row);
      tell_gone(step, row, "released by force", {});
      note(step, at, spi::event_kind::forced, row, true);
    } else {
      // From now on it ends by time, as if its last renewal had been now.
      claim_row ending = row;
      ending.ends = std::min(row.ends, after(step.now, duration(row.ttl)));
      ending.revoked = true;
      resource_rows_.change_holder(at, row, ending);
      tell_gone(step, row, revoked_text, duration(ending.ends - step.now));
    }
  }
  const std::uint32_t waiting = at.waiting;
  promote(step, at);
  // The head looks again at the end that there is now.
  if (!taken.empty() && waiting > 0 && at.waiting == waiting) wake_head(step, at);
  save(step, at);
  return taken;
}

void ledger::settle(const moment& step, std::string_view key) {
  auto found = resource_rows_.find(key);
  if (!found) return;
  promote(step, *found);
  save(step, *found);
}

void ledger::save(const moment& step, resource_row& at) {
  address_news(step, at);
  resource_rows_.save(at);
}

}  // namespace holdfast::sqlite
