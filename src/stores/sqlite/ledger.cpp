// The verbs inside a transaction, as far as they are this store's own: the short way, looking, and what is
// cleared away.
#include "stores/sqlite/ledger.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::sqlite {

namespace {

ledgers::rules embedded_rules() {
  ledgers::rules rules;
  rules.waiter_lease = forever;  // it ends with its client
  rules.claim_limit = ledger_limits::claim_limit;
  rules.holder_limit = ledger_limits::holder_limit;
  rules.holds_are_leases = false;
  rules.own_pushes_arrive = true;
  rules.head_watches = true;
  return rules;
}

moment with_place(const moment& step, std::int64_t& place) {
  moment placed = step;
  placed.place = &place;
  return placed;
}

}  // namespace

ledger::ledger(statements& of) : book(embedded_rules()), statements_(of), resource_rows_(of) {}

result<spi::outcome> ledger::attempt(const moment& step, const spi::claim& claim,
                                     std::int64_t& place) {
  return book::attempt(with_place(step, place), claim);
}

std::optional<spi::granted> ledger::take_at_once(const moment& step, const spi::claim& claim,
                                                 std::int64_t& place) {
  if (place != ledgers::nowhere || impossible(claim)) return std::nullopt;
  const std::string key = key_of(claim.resource);
  const resource_row* known = resource_rows_.look(key);
  if (known == nullptr || !known->unused() || known->is_blocked(step.now)) return std::nullopt;
  resource_row at = resource_rows_.recall(key);
  begin_use(at, claim);
  const claim_row row = grant(step, at, entry_of(step, claim, next_place(at)));
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
  const claim_row held = *at.inline_holder;
  remove_holder(at, held);
  if (!resource_rows_.exchange(std::move(at))) return std::nullopt;
  return spi::departure::was_holder;
}

spi::departure ledger::leave(const moment& step, const spi::claim& claim, std::int64_t place) {
  if (place == ledgers::nowhere) return spi::departure::gone;
  return book::leave(with_place(step, place), claim);
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

result<spi::granted> ledger::change(const moment& step, const spi::claim& claim, std::int64_t place,
                                    spi::mode to) {
  return book::change(with_place(step, place), claim, to);
}

result<spi::granted> ledger::transfer(const moment& step, const spi::claim_id& from,
                                      const spi::claim& to, std::int64_t& place) {
  place = ledgers::to_be_found;
  return book::transfer(with_place(step, place), from, to);
}

result<spi::latch_state> ledger::read_latch(const moment& step, const spi::resource_id& resource) {
  const ledgers::resource* at = find(resource);
  if (at == nullptr) return spi::latch_state{};
  return book::read_latch(step, *at);
}

std::vector<claim_row> ledger::holders_of(const spi::resource_id& resource) {
  const auto at = resource_rows_.find(key_of(resource));
  if (!at || at->kind == kind::latch) return {};
  return resource_rows_.all_holders(*at, ledger_limits::claim_limit);
}

std::vector<claim_row> ledger::line_of(const spi::resource_id& resource) {
  const auto at = resource_rows_.find(key_of(resource));
  if (!at || at->kind == kind::latch) return {};
  return resource_rows_.line(*at, ledger_limits::claim_limit);
}

spi::server_time ledger::blocked_until(const spi::resource_id& resource) {
  const auto at = resource_rows_.find(key_of(resource));
  return at ? at->blocked_until : ledgers::long_ago;
}

std::vector<resource_row> ledger::named(const std::string& space, const std::string& prefix) {
  const std::string from = key_of({space, prefix});
  std::string to = from;
  // The next key that does not begin like this. Names are valid UTF-8, so a byte 0xff ends all.
  to += '\xff';
  std::vector<resource_row> rows;
  query found(statements_.resources_named, bytes(from), bytes(to));
  while (found.next()) {
    resource_row row;
    row.id = found.number(0);
    row.key = found.blob(1);
    row.last = static_cast<std::uint64_t>(found.number(2));
    decode_resource(found.blob(3), row);
    rows.push_back(std::move(row));
  }
  return rows;
}

void ledger::settle(const moment& step, std::string_view key) {
  resource_row* at = load(key);
  if (at == nullptr) return;
  promote(step, *at);
  save(step, *at);
}

void ledger::purge(const moment& step, std::int64_t client) {
  // Read before anything is changed: a query must not run over rows that are being deleted.
  std::vector<std::string> touched;
  {
    std::set<std::int64_t> with_rows;
    query rows(statements_.resources_of_client, client);
    while (rows.next()) with_rows.insert(rows.number(0));
    query all(statements_.resources_from, std::int64_t{0}, no_limit);
    while (all.next()) {
      resource_row row;
      decode_resource(all.blob(3), row);
      const bool inside = (row.inline_holder && row.inline_holder->process == client) ||
                          std::ranges::any_of(row.line, [client](const claim_row& each) {
                            return each.process == client;
                          });
      if (inside || with_rows.contains(all.number(0))) touched.emplace_back(all.blob(1));
    }
  }
  for (const std::string& key : touched) {
    resource_row* at = load(key);
    if (at == nullptr) continue;
    drop_dead_holders(step, *at);
    for (const claim_row& row : resource_rows_.waits_of(*at, client)) withdraw(step, *at, row);
    promote(step, *at);
    wake_head(step, *at);
    save(step, *at);
  }
  run(statements_.delete_observers_of, client);
  run(statements_.delete_client, client);
}

// A key that ends with its '/' is a whole namespace.
void ledger::observe(const moment& step, std::string_view key) {
  run(statements_.insert_observer, key, step.self);
  std::vector<resource_row> touched;
  if (key.find('/') + 1 == key.size()) {
    touched = named(resource_of(key).space, {});
  } else {
    auto found = resource_rows_.find(key);
    touched.push_back(found ? std::move(*found) : resource_rows_.make(key, step.now));
  }
  for (resource_row& at : touched) {
    at.dirty = at.dirty || !at.observed;
    at.observed = true;
    resource_rows_.save(at);
  }
}

void ledger::ignore(const moment& step, std::string_view key) {
  run(statements_.delete_observer, key, step.self);
}

// Who observed and is gone is forgotten here.
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

}  // namespace holdfast::sqlite
