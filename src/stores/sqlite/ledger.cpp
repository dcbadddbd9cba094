// The verbs inside a transaction, as far as they are specific to this store: the fast path,
// looking, purging, and who watches whom.
#include "stores/sqlite/ledger.hpp"

#include "stores/sqlite/membership.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

ledgers::rules embedded_rules() {
  ledgers::rules rules;
  rules.waiter_lease = forever;  // a waiter's lease ends with its client
  rules.claim_limit = ledger_limits::claim_limit;
  rules.holds_are_leases = false;
  rules.own_pushes_arrive = true;
  rules.head_watches = true;
  return rules;
}

}  // namespace

ledger::ledger(statements& of) : book(embedded_rules()), statements_(of) {}

std::optional<spi::granted> ledger::fast_attempt(const moment& step, const spi::claim& claim,
                                                 std::int64_t& place) {
  if (place != ledgers::nowhere || impossible(claim)) return std::nullopt;
  const auto known = remembered_.find(key_of(claim.resource));
  if (known == remembered_.end()) return std::nullopt;
  if (!known->second.unused() || known->second.is_blocked(step.now)) return std::nullopt;
  auto changed = remembered_.extract(known);
  resource_row& at = changed.mapped();
  begin_use(at, claim);
  const claim_row row = grant(step, at, entry_of(step, claim, next_place(at)));
  const spi::granted answer = granted_to(step, at, row);
  if (!exchange(std::move(changed))) return std::nullopt;
  place = row.place;
  return answer;
}

std::optional<spi::departure> ledger::fast_leave(const moment& step, const spi::claim& claim,
                                                 std::int64_t place) {
  const auto known = remembered_.find(key_of(claim.resource));
  if (known == remembered_.end() || known->second.next_end <= step.now) return std::nullopt;
  const auto& held = known->second.inline_holder;
  if (!held || held->place != place || held->id != claim.id) return std::nullopt;
  auto changed = remembered_.extract(known);
  remove_holder(changed.mapped(), claim_row(*changed.mapped().inline_holder));
  if (!exchange(std::move(changed))) return std::nullopt;
  return spi::departure::was_holder;
}

bool ledger::has(const moment& step, const spi::claim& claim, std::int64_t place) {
  ledgers::resource* at = place == ledgers::nowhere ? nullptr : find(claim.resource);
  if (at == nullptr) return false;
  const moment placed = with_place(step, place);
  return holder(placed, *at, claim.id).has_value() || waiter(placed, *at, claim.id);
}

spi::renewal ledger::look(const moment& step, const spi::claim& claim, std::int64_t place,
                          std::optional<std::int64_t>& behind) {
  spi::renewal answer;
  answer.at = step.now;
  answer.state = spi::hold_state::lost;
  const moment placed = with_place(step, place);
  ledgers::resource* at = place == ledgers::nowhere ? nullptr : find(claim.resource);
  if (at == nullptr) return answer;
  if (const auto held = holder(placed, *at, claim.id)) {
    if (held->ends <= step.now) return answer;
    answer = renewal_of(step, *at, *held);
    address_news(step, *loaded_);
  } else if (waiter(placed, *at, claim.id)) {
    answer.state = spi::hold_state::waiting;
    answer.recheck_after = ledger_limits::recheck;
    if (at->exclusive > 0 && at->next_end > step.now) {
      const claim_row* before = previous_waiter(*at, place);
      if (before != nullptr && !absent(step, *before)) behind = before->process;
    }
  }
  return answer;
}

std::optional<spi::granted> ledger::take_up(const moment& step, const spi::claim& claim,
                                            std::int64_t place) {
  ledgers::resource* at = place == ledgers::nowhere ? nullptr : find(claim.resource);
  if (at == nullptr) return std::nullopt;
  const auto held = holder(with_place(step, place), *at, claim.id);
  if (!held || held->ends <= step.now) return std::nullopt;
  const spi::granted answer =
      granted_to(step, *at, held->offer ? prolong(step, *at, *held) : *held);
  save(step, *at);
  return answer;
}

result<spi::latch_state> ledger::read_latch(const moment& step, const spi::resource_id& resource) {
  const ledgers::resource* at = find(resource);
  if (at == nullptr) return spi::latch_state{};
  return book::read_latch(step, *at);
}

contents ledger::contents_of(const resource_row& at) {
  contents found{resource_of(at.key).name, {}, {}, at.blocked_until};
  if (at.kind == kind::latch) return found;
  found.holders = holders(at, ledger_limits::claim_limit);
  found.line = line(at);
  return found;
}

contents ledger::look_at(const spi::resource_id& resource) {
  const resource_row* at = load(key_of(resource));
  return at == nullptr ? contents{} : contents_of(*at);
}

std::vector<contents> ledger::look_at_all(const std::string& space, const std::string& prefix) {
  std::vector<contents> all;
  for (const resource_row& row : named(space, prefix)) {
    if (!row.unused() || row.is_blocked(now())) all.push_back(contents_of(row));
  }
  return all;
}

std::vector<resource_row> ledger::named(const std::string& space, const std::string& prefix) {
  const std::string from = key_of({space, prefix});
  std::string to = from;
  // The first key after all those with this prefix. Names are valid UTF-8, so a
  // byte 0xff comes after them.
  to += '\xff';
  std::vector<resource_row> rows;
  query found(statements_.resources_named, bytes(from), bytes(to));
  while (found.next()) rows.push_back(row_in(found));
  return rows;
}

void ledger::settle(const moment& step, std::string_view key) {
  resource_row* at = load(key);
  if (at == nullptr) return;
  promote(step, *at);
  save(step, *at);
}

void ledger::purge(const moment& step) {
  const auto ended = [&step](const claim_row& row) { return dead(step, row); };
  // Read before anything is changed: a query must not iterate over rows that are being deleted.
  std::vector<std::string> touched;
  {
    query all(statements_.resources_from, std::int64_t{0}, no_limit);
    while (all.next()) {
      const resource_row row = row_in(all);
      if (std::ranges::any_of(holders(row, ledger_limits::claim_limit), ended) ||
          std::ranges::any_of(line(row), ended)) {
        touched.push_back(row.key);
      }
    }
  }
  for (const std::string& key : touched) {
    resource_row* at = load(key);
    if (at == nullptr) continue;
    drop_dead_holders(step, *at);
    for (const claim_row& row : line(*at)) {
      if (ended(row)) withdraw(step, *at, row);
    }
    promote(step, *at);
    wake_head(step, *at);
    save(step, *at);
  }
  for (const std::int64_t client : *step.dead) forget_client(client);
}

void ledger::forget_client(std::int64_t client) {
  run(statements_.delete_observers_of, client);
  run(statements_.delete_client, client);
}

// After a reboot no former client lives, and the former clock means nothing. Fences are kept, and
// latches (their life starts over), and the time for which a lock is blocked after an abnormal end,
// which starts over too, since it is unknown how much of it had passed.
void ledger::start_boot(std::uint64_t floor) {
  std::vector<resource_row> all;
  {
    query rows(statements_.resources_from, std::int64_t{0}, no_limit);
    while (rows.next()) all.push_back(row_in(rows));
  }
  for (const resource_row& before : all) {
    resource_row row;
    row.id = before.id;
    row.key = before.key;
    row.last = floor;
    row.dirty = true;
    if (before.kind == kind::latch) {
      query latch(statements_.latch, before.id);
      row.kind = kind::latch;
      row.next_end = after(now(), latch.next() ? duration(latch.number(1)) : duration{0});
    }
    row.block(before.blocked_for, now());
    for (const claim_row& holder : holders(before, ledger_limits::claim_limit)) {
      row.block(holder.lock_delay, now());
    }
    if (row.kind == kind::latch || row.blocked_until > ledgers::long_ago) {
      write(row);
    } else {
      run(statements_.delete_resource, row.id);
    }
  }
  run(statements_.delete_all_claims);
}

// A key that ends with the namespace's '/' means the whole namespace.
void ledger::observe(const moment& step, std::string_view key) {
  run(statements_.insert_observer, key, step.self);
  std::vector<resource_row> touched;
  if (key.find('/') + 1 == key.size()) {
    touched = named(resource_of(key).space, {});
  } else {
    if (load(key) == nullptr) make(resource_of(key), step.now);
    touched.push_back(std::move(*loaded_));
  }
  for (resource_row& at : touched) {
    at.dirty = at.dirty || !at.observed;
    at.observed = true;
    write(at);
  }
}

void ledger::ignore(const moment& step, std::string_view key) {
  run(statements_.delete_observer, key, step.self);
}

// Observers that are gone are forgotten here.
void ledger::address_news(const moment& step, resource_row& at) {
  auto& out = static_cast<effects&>(step.out);
  auto events = std::exchange(out.events, {});
  const bool latch_changed = !std::exchange(out.latches, {}).empty();
  if (!at.observed) return;
  const std::string space = space_of(at.key);
  std::vector<std::int64_t> observers;
  query found(statements_.observers, bytes(at.key), bytes(space));
  while (found.next()) {
    if (!step.dead->contains(found.number(0))) observers.push_back(found.number(0));
  }
  if (observers.empty()) {
    at.observed = false;
    at.dirty = true;
  }
  if (events.empty() && !latch_changed) return;
  news made{at.key, {}, latch_changed, std::move(observers)};
  for (auto& each : events) made.events.push_back(std::move(each.event));
  out.news.push_back(std::move(made));
}

spi::server_time ledger::last_word(const moment& step, const claim_row& waiting) {
  if (beside_ == nullptr || waiting.process == step.self) return step.now;
  query client(statements_.client, waiting.process);
  if (!client.next()) return waiting.since;
  return std::max(waiting.since, sqlite::last_word(*beside_, std::string(client.blob(0))));
}

// New waiters are not checked.
bool ledger::absent(const moment& step, const claim_row& waiting) {
  const spi::server_time limit = step.now - ledger_limits::absent;
  return waiting.since <= limit && last_word(step, waiting) <= limit;
}

// The head of the queue watches all holders, every other waiter its predecessor: when
// that one dies, it asks again and learns whom to watch next. An absent client watches
// nobody, so its neighbour does.
duration ledger::recheck_after(const moment& step, ledgers::resource& at, const claim_row& row,
                               bool queued) {
  auto& out = static_cast<effects&>(step.out);
  const claim_row* found = queued ? previous_waiter(at, row.place) : nullptr;
  while (found != nullptr) {
    const claim_row before = *found;
    if (dead(step, before)) {
      withdraw(step, at, before);
    } else if (!absent(step, before)) {
      out.blockers = {before.process};
      return ledger_limits::recheck;
    }
    found = previous_waiter(at, before.place);
  }
  const std::size_t limit = queued ? ledger_limits::told_limit : ledger_limits::holder_limit;
  out.blockers = holding_clients(static_cast<resource_row&>(at), limit);
  const spi::server_time end = at.is_blocked(step.now) ? at.blocked_until : at.next_end;
  return std::min(ledger_limits::recheck, end - step.now);
}

void ledger::watch_holders(const moment& step, ledgers::resource& at) {
  static_cast<effects&>(step.out).blockers =
      holding_clients(static_cast<resource_row&>(at), ledger_limits::told_limit);
}

}  // namespace holdfast::sqlite
