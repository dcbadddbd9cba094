// How a resource passes from one to the next: what has ended goes out, who is next comes in.
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/life.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

// The lines that decide: exclusive wants nobody else, shared nobody exclusive, permits must
// suffice; and after an abnormal end the resource may be blocked for a while. Who waits is not looked
// at.
bool fits(const resource_row& at, const claim_row& row, instant now) {
  if (at.blocked_until > now) return false;
  switch (row.mode) {
    case spi::mode::exclusive:
      return at.holders == 0;
    case spi::mode::shared:
      return at.exclusive == 0;
    case spi::mode::permit:
      return at.permits + row.permits <= at.max;
  }
  return false;
}

// Without a look at the line: an exclusive holder that lives keeps everybody out.
bool blocked_to_all(const moment& step, const resource_row& at) {
  return at.exclusive > 0 && at.inline_holder && !step.dead.contains(at.inline_holder->client);
}

// Strict hand-over between two processes that take turns halves their throughput: the one that
// releases may not take it again although it is there and the other must be woken first. So a lone
// unfair waiter is only told, and gets it for certain once it has waited a little.
bool hands_over(const moment& step, const resource_row& at, const claim_row& next) {
  if (step.claim != nullptr && *step.claim == next.id) return true;
  if (next.fair || at.waiting >= 2) return true;
  return step.now - next.since > ledger_limits::hand_over_after.count();
}

void set_end(claim_row& row, instant now) {
  const duration ttl(row.ttl);
  if (row.offer) {
    row.ends = after(now, std::min(ttl, ledger_limits::offer));
  } else {
    row.ends = row.renewed ? never : after(now, ttl);
  }
}

}  // namespace

// The dead are not left out: whoever meets them here takes them off.
std::optional<claim_row> ledger::next_in_line(const moment& step, resource_row& at) {
  auto next = resource_rows_.head(at);
  while (next && !step.dead.contains(next->client) && silent(step, at, *next)) {
    next = resource_rows_.after(at, next->place);
  }
  return next;
}

// Who waits decides whether a newcomer may take what is free.
bool ledger::may_pass(const moment& step, const resource_row& at, const spi::claim& newcomer) {
  if (at.waiting == 0) return true;
  const bool reads = newcomer.mode == spi::mode::shared;
  // Readers that come one after the other would keep a writer out forever.
  if (!newcomer.fair && at.waiting_fair == 0 && (!reads || at.waiting_exclusive == 0)) return true;
  if (at.silent_since == 0) return false;
  for (auto each = resource_rows_.head(at); each; each = resource_rows_.after(at, each->place)) {
    if (step.dead.contains(each->client) || silent(step, at, *each)) continue;
    if (newcomer.fair || each->fair) return false;
    if (reads && each->mode == spi::mode::exclusive) return false;
  }
  return true;
}

instant ledger::last_word(const moment& step, const claim_row& waiter) {
  if (step.beside == nullptr || waiter.client == step.self) return step.now;
  query client(statements_.client, waiter.client);
  if (!client.next()) return waiter.since;
  return std::max(waiter.since, sqlite::last_word(*step.beside, std::string(client.blob(0))));
}

bool ledger::silent(const moment& step, const resource_row& at, const claim_row& waiter) {
  return at.silent_since != 0 && last_word(step, waiter) <= at.silent_since;
}

// Those who have just come are not asked.
bool ledger::absent(const moment& step, const claim_row& waiter) {
  const instant limit = step.now - ledger_limits::absent.count();
  return waiter.since <= limit && last_word(step, waiter) <= limit;
}

// Whether a claim can be granted beside those who hold, once the dead among them are taken off.
bool ledger::free_for(const moment& step, resource_row& at, const claim_row& row) {
  if (fits(at, row, step.now)) return true;
  return drop_dead_holders(step, at) && fits(at, row, step.now);
}

void ledger::promote(const moment& step, resource_row& at) {
  drop_ended(step, at);
  std::vector<claim_row> granted;
  bool handing_over = false;
  std::size_t count = 0;
  for (; at.waiting > 0 && count < ledger_limits::promote_limit; ++count) {
    if (blocked_to_all(step, at)) break;
    const auto next = next_in_line(step, at);
    if (!next) break;
    if (step.dead.contains(next->client)) {
      resource_rows_.remove_waiter(at, *next);
      note(step, at, spi::event_kind::withdrawn, *next, false);
      continue;
    }
    if (!free_for(step, at, *next)) break;
    // Asked once: a release that lets in one reader lets in all up to the next writer.
    handing_over = handing_over || hands_over(step, at, *next);
    if (!handing_over) {
      if (!std::exchange(at.head_told, true)) {
        at.dirty = true;
        wake_head(step, at);
      }
      break;
    }
    resource_rows_.remove_waiter(at, *next);
    granted.push_back(grant(step, at, *next));
  }
  // After the last grant, so that `wanted` does not count those who got in together.
  for (const claim_row& row : granted) {
    if (step.claim != nullptr && *step.claim == row.id) continue;
    step.out.pushes.push_back(
        {push::kind::granted, row.client, row.id, granted_to(step, at, row), {}});
  }
  // Invariant 5: who is head now watched only the last of those who were let in. And where the
  // limit ended it, the head's own attempt goes on.
  if (granted.size() > 1 || count == ledger_limits::promote_limit) wake_head(step, at);
}

void ledger::drop_ended(const moment& step, resource_row& at) {
  if (at.kind == kind::latch || at.next_end > step.now) return;
  instant next_end = never;
  for (const claim_row& row : resource_rows_.all_holders(at, ledger_limits::holder_limit)) {
    if (row.ends <= step.now) {
      if (row.offer && !row.revoked && at.waiting > 0) {
        at.silent_since = std::max(at.silent_since, row.since);
      }
      end_abnormally(step, at, row, row.ends);
    } else {
      next_end = std::min(next_end, row.ends);
    }
  }
  at.next_end = next_end;
  at.dirty = true;
}

bool ledger::drop_dead_holders(const moment& step, resource_row& at) {
  if (step.dead.empty() || at.holders == 0) return false;
  bool dropped = false;
  for (const claim_row& row : resource_rows_.all_holders(at, ledger_limits::holder_limit)) {
    if (!step.dead.contains(row.client)) continue;
    end_abnormally(step, at, row, step.now);
    dropped = true;
  }
  return dropped;
}

// Nobody said goodbye: it may be at work still, and where no fence is checked only time helps.
void ledger::end_abnormally(const moment& step, resource_row& at, const claim_row& row,
                            instant since) {
  resource_rows_.remove_holder(at, row);
  block(at, duration(row.lock_delay), since);
  note(step, at, spi::event_kind::expired, row, true);
}

claim_row ledger::grant(const moment& step, resource_row& at, claim_row row) {
  row.fence = next_fence(at, row.fence_block);
  row.since = step.now;
  row.offer = row.client != step.self && (step.claim == nullptr || *step.claim != row.id);
  set_end(row, step.now);
  at.head_told = false;
  at.blocked_until = 0;  // it is over, and nothing that a reboot should find
  at.blocked_for = duration{0};
  resource_rows_.add_holder(at, row);
  note(step, at, spi::event_kind::granted, row, true);
  return row;
}

void ledger::complete(const moment& step, resource_row& at, claim_row& row) {
  if (!row.offer || row.revoked) return;
  const claim_row before = row;
  row.offer = false;
  set_end(row, step.now);
  resource_rows_.change_holder(at, before, row);
}

void ledger::wake_head(const moment& step, resource_row& at) {
  if (const auto head = next_in_line(step, at)) {
    step.out.pushes.push_back({push::kind::freed, head->client, head->id, {}, {}});
  }
}

void ledger::purge(const moment& step, std::int64_t client) {
  // Read before anything is changed: a query must not run over rows that are being deleted.
  std::vector<std::string> touched;
  {
    std::set<std::int64_t> with_rows;
    query rows(statements_.resources_of_client, client);
    while (rows.next()) with_rows.insert(rows.number(0));
    query all(statements_.resources_from, std::int64_t{0}, never);
    while (all.next()) {
      resource_row row;
      decode_resource(all.blob(3), row);
      const bool inside = (row.inline_holder && row.inline_holder->client == client) ||
                          std::ranges::any_of(row.line, [client](const claim_row& each) {
                            return each.client == client;
                          });
      if (inside || with_rows.contains(all.number(0))) touched.emplace_back(all.blob(1));
    }
  }
  for (const std::string& key : touched) {
    auto found = resource_rows_.find(key);
    if (!found) continue;
    resource_row& at = *found;
    drop_dead_holders(step, at);
    for (const claim_row& row : resource_rows_.waits_of(at, client)) {
      resource_rows_.remove_waiter(at, row);
      note(step, at, spi::event_kind::withdrawn, row, false);
    }
    promote(step, at);
    wake_head(step, at);
    save(step, at);
  }
  run(statements_.delete_observers_of, client);
  run(statements_.delete_client, client);
}

}  // namespace holdfast::sqlite
