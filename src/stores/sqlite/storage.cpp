// The ledger's storage: the rows of the resource that a verb is about. Contains no grant rules.
#include "stores/sqlite/ledger.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::sqlite {

namespace {

// Every resource of this ledger is one of these.
resource_row& row_of(ledgers::resource& at) { return static_cast<resource_row&>(at); }
const resource_row& row_of(const ledgers::resource& at) {
  return static_cast<const resource_row&>(at);
}

std::int64_t number(standing where) { return static_cast<std::int64_t>(where); }

bool has_room(const resource_row& at, const claim_row& waiter) {
  return at.line.size() < ledger_limits::line_limit &&
         at.key.size() + encoded_size(at) + encoded_size(waiter) <= ledger_limits::row_limit;
}

}  // namespace

// --- a resource's own row ------------------------------------------------------------------------

resource_row* ledger::load(std::string_view key) {
  query found(statements_.resource, key);
  if (!found.next()) return nullptr;
  loaded_ = row_in(found);
  loaded_->stored_last = loaded_->last;
  loaded_->stored_body = found.blob(3);
  return &*loaded_;
}

bool ledger::exchange(remembered_rows::node_type changed) {
  resource_row& at = changed.mapped();
  std::string body = encode(at);
  run(statements_.exchange_resource, at.id, static_cast<std::int64_t>(at.last), bytes(body),
      static_cast<std::int64_t>(at.stored_last), bytes(at.stored_body), bytes(at.key));
  if (statements_.owner.changed_rows() == 0) return false;
  at.stored_last = at.last;
  at.stored_body = std::move(body);
  at.dirty = false;
  remembered_.insert(std::move(changed));  // which cannot fail: the row is written already
  return true;
}

ledgers::resource* ledger::find(const spi::resource_id& id) { return load(key_of(id)); }

// Its fences start above all that were ever given.
ledgers::resource& ledger::make(const spi::resource_id& id, spi::server_time now) {
  resource_row& row = loaded_.emplace();
  row.key = key_of(id);
  {
    query meta(statements_.meta);
    if (meta.next()) row.last = static_cast<std::uint64_t>(meta.number(1));
  }
  const std::string space = space_of(row.key);
  {
    query observers(statements_.observers, bytes(row.key), bytes(space));
    row.observed = observers.next();
  }
  const std::string body = encode(row);
  run(statements_.insert_resource, bytes(row.key), static_cast<std::int64_t>(row.last),
      bytes(body));
  row.id = statements_.owner.last_row();
  if (row.id % ledger_limits::forgetting_step == 0 && beyond_kept()) forget_some(now);
  return row;
}

void ledger::save(const moment& step, ledgers::resource& at) {
  address_news(step, row_of(at));
  write(row_of(at));
}

void ledger::write(resource_row& at) {
  if (!at.dirty) return;
  std::string body = encode(at);
  run(statements_.update_resource, at.id, static_cast<std::int64_t>(at.last), bytes(body));
  at.stored_last = at.last;
  at.stored_body = std::move(body);
  at.dirty = false;
  if (!at.plain()) {
    remembered_.erase(at.key);
    return;
  }
  if (remembered_.size() >= ledger_limits::remembered_limit) remembered_.clear();
  remembered_.insert_or_assign(at.key, at);
}

bool ledger::beyond_kept() {
  query beyond(statements_.resource_after, ledger_limits::kept_resources);
  return beyond.next();
}

void ledger::forget_some(spi::server_time now) {
  constexpr std::int64_t most = 2 * ledger_limits::forgetting_step;
  std::vector<std::int64_t> idle;
  std::uint64_t greatest = 0;
  std::int64_t seen = 0;
  {
    query rows(statements_.resources_from, forgotten_up_to_, most);
    while (rows.next()) {
      const resource_row row = row_in(rows);
      forgotten_up_to_ = row.id;
      ++seen;
      const bool is_latch = row.kind == kind::latch && row.next_end > now;
      if (!row.unused() || is_latch || row.is_blocked(now)) continue;
      idle.push_back(row.id);
      greatest = std::max(greatest, row.last);
    }
  }
  if (seen < most) forgotten_up_to_ = 0;  // starts over
  if (idle.empty()) return;
  run(statements_.set_floor, static_cast<std::int64_t>(greatest));
  // The newest is the one that is being created.
  for (const std::int64_t id : idle) {
    if (id == statements_.owner.last_row()) continue;
    run(statements_.delete_latch, id);
    run(statements_.delete_latch_changes, id);
    run(statements_.delete_resource, id);
  }
}

spi::resource_id ledger::id_of(const ledgers::resource& at) const {
  return resource_of(row_of(at).key);
}

// --- claims that are rows of their own -----------------------------------------------------------

std::optional<claim_row> ledger::at_place(const resource_row& at, standing where,
                                          std::int64_t place, const spi::claim_id& id) {
  query found(statements_.claim, at.id, number(where), place);
  if (!found.next()) return std::nullopt;
  claim_row row = decode_claim(found.blob(0));
  if (row.id != id) return std::nullopt;
  return row;
}

std::vector<claim_row> ledger::all(const resource_row& at, standing where, std::size_t limit) {
  std::vector<claim_row> rows;
  query found(statements_.claims, at.id, number(where), static_cast<std::int64_t>(limit));
  while (found.next()) rows.push_back(decode_claim(found.blob(0)));
  return rows;
}

void ledger::insert(const resource_row& at, standing where, const claim_row& row) {
  const std::string body = encode(row);
  run(statements_.insert_claim, at.id, number(where), row.place, row.process, bytes(body));
}

void ledger::erase(const resource_row& at, standing where, std::int64_t place) {
  run(statements_.delete_claim, at.id, number(where), place);
}

// --- holders -------------------------------------------------------------------------------------

std::optional<claim_row> ledger::holder(const moment& step, ledgers::resource& of,
                                        const spi::claim_id& id) {
  const resource_row& at = row_of(of);
  const std::int64_t place = *step.place;
  if (place == ledgers::nowhere) return std::nullopt;
  if (place == ledgers::to_be_found) {
    for (claim_row& row : holders(at, ledger_limits::claim_limit)) {
      if (row.id == id) return std::move(row);
    }
    return std::nullopt;
  }
  if (at.inline_holder && at.inline_holder->place == place && at.inline_holder->id == id) {
    return at.inline_holder;
  }
  if (at.holders == (at.inline_holder ? 1U : 0U)) return std::nullopt;
  return at_place(at, standing::holds, place, id);
}

std::vector<claim_row> ledger::holders(const ledgers::resource& of, std::size_t limit) {
  const resource_row& at = row_of(of);
  std::vector<claim_row> rows;
  if (at.inline_holder) rows.push_back(*at.inline_holder);
  if (at.holders <= rows.size() || limit <= rows.size()) return rows;
  auto others = all(at, standing::holds, limit - rows.size());
  std::move(others.begin(), others.end(), std::back_inserter(rows));
  return rows;
}

std::vector<std::int64_t> ledger::holding_clients(const resource_row& at, std::size_t limit) {
  std::vector<std::int64_t> clients;
  const std::int64_t first = at.inline_holder ? at.inline_holder->process : nobody;
  if (first != nobody) clients.push_back(first);
  if (at.holders <= (at.inline_holder ? 1U : 0U)) return clients;
  query found(statements_.holding_clients, at.id, static_cast<std::int64_t>(limit));
  while (found.next()) {
    if (found.number(0) != nobody && found.number(0) != first) clients.push_back(found.number(0));
  }
  return clients;
}

std::vector<claim_row> ledger::ended_holders(ledgers::resource& at, spi::server_time now) {
  std::vector<claim_row> ended;
  at.next_end = never;
  at.dirty = true;
  for (claim_row& row : holders(at, ledger_limits::claim_limit)) {
    if (row.ends <= now) {
      ended.push_back(std::move(row));
    } else {
      at.next_end = std::min(at.next_end, row.ends);
    }
  }
  return ended;
}

// Claims that are granted while somebody waits learn it with their grant.
std::vector<claim_row> ledger::holders_to_tell(ledgers::resource& at) {
  if (at.waiting > 1) return {};
  return holders(at, ledger_limits::told_limit);
}

void ledger::put_holder(ledgers::resource& of, const claim_row& row) {
  resource_row& at = row_of(of);
  if (at.inline_holder) {
    insert(at, standing::holds, row);
  } else {
    at.inline_holder = row;
  }
}

void ledger::erase_holder(ledgers::resource& of, const claim_row& row) {
  resource_row& at = row_of(of);
  if (at.inline_holder && at.inline_holder->place == row.place) {
    at.inline_holder.reset();
  } else {
    erase(at, standing::holds, row.place);
  }
}

// Another one at the same place.
void ledger::replace_holder(ledgers::resource& of, const claim_row&, const claim_row& now) {
  resource_row& at = row_of(of);
  if (at.inline_holder && at.inline_holder->place == now.place) {
    at.inline_holder = now;
  } else {
    erase(at, standing::holds, now.place);
    insert(at, standing::holds, now);
  }
}

// --- waiters -------------------------------------------------------------------------------------

std::optional<claim_row> ledger::waiter(const moment& step, ledgers::resource& of,
                                        const spi::claim_id& id) {
  const resource_row& at = row_of(of);
  if (*step.place <= ledgers::nowhere) return std::nullopt;
  for (const claim_row& row : at.line) {
    if (row.place == *step.place && row.id == id) return row;
  }
  if (at.waiting == at.line.size()) return std::nullopt;
  return at_place(at, standing::waits, *step.place, id);
}

std::vector<claim_row> ledger::line(const resource_row& at) {
  std::vector<claim_row> rows = at.line;
  if (at.waiting == rows.size()) return rows;
  auto others = all(at, standing::waits, ledger_limits::claim_limit);
  std::move(others.begin(), others.end(), std::back_inserter(rows));
  return rows;
}

const claim_row* ledger::next_waiter(ledgers::resource& of, std::int64_t place) {
  const resource_row& at = row_of(of);
  for (const claim_row& row : at.line) {
    if (row.place > place) return &row;
  }
  if (at.waiting == at.line.size()) return nullptr;
  query found(statements_.after, at.id, place);
  if (!found.next()) return nullptr;
  passing_ = decode_claim(found.blob(0));
  return &passing_;
}

const claim_row* ledger::previous_waiter(ledgers::resource& of, std::int64_t place) {
  const resource_row& at = row_of(of);
  if (at.waiting > at.line.size() && (at.line.empty() || at.line.back().place < place)) {
    query found(statements_.before, at.id, place);
    if (found.next()) {
      passing_ = decode_claim(found.blob(0));
      return &passing_;
    }
  }
  const auto found = std::find_if(at.line.rbegin(), at.line.rend(),
                                  [&](const claim_row& row) { return row.place < place; });
  return found == at.line.rend() ? nullptr : &*found;
}

// Places and fences share the same numbers.
std::int64_t ledger::next_place(ledgers::resource& at) {
  return static_cast<std::int64_t>(at.last + 1);
}

void ledger::put_waiter(ledgers::resource& of, const claim_row& row) {
  resource_row& at = row_of(of);
  at.last = static_cast<std::uint64_t>(row.place);
  if (at.line.size() == at.waiting && has_room(at, row)) {
    at.line.push_back(row);
  } else {
    insert(at, standing::waits, row);
  }
}

void ledger::erase_waiter(ledgers::resource& of, const claim_row& row) {
  resource_row& at = row_of(of);
  at.head_told = false;  // it may have been the head
  if (std::erase_if(at.line, [&](const claim_row& each) { return each.place == row.place; }) == 0) {
    erase(at, standing::waits, row.place);
  }
  if (at.line.empty() && at.waiting > 0) refill(at);
}

// Several at once: their page is then written once for all of them.
void ledger::refill(resource_row& at) {
  for (claim_row& row : all(at, standing::waits, ledger_limits::line_limit)) {
    if (!has_room(at, row)) break;
    at.line.push_back(std::move(row));
  }
  if (!at.line.empty()) run(statements_.delete_line, at.id, at.line.back().place);
}

bool ledger::tell_free(ledgers::resource& at, const claim_row&) {
  at.dirty = true;
  return !std::exchange(row_of(at).head_told, true);
}

void ledger::taken(ledgers::resource& at) { row_of(at).head_told = false; }

// --- latches -------------------------------------------------------------------------------------

std::uint32_t ledger::latch_count(const ledgers::resource& at) {
  query latch(statements_.latch, row_of(at).id);
  return latch.next() ? static_cast<std::uint32_t>(latch.number(0)) : 0;
}

void ledger::set_latch(ledgers::resource& at, std::uint32_t count, duration life) {
  run(statements_.set_latch, row_of(at).id, std::int64_t{count}, life.count());
}

void ledger::erase_latch(ledgers::resource& at) {
  run(statements_.delete_latch, row_of(at).id);
  run(statements_.delete_latch_changes, row_of(at).id);
}

bool ledger::latch_counted(const ledgers::resource& at, const spi::claim_id& id,
                           spi::server_time now) {
  query found(statements_.latch_change, row_of(at).id, id, number_of(now));
  return found.next();
}

void ledger::remember_latch_change(ledgers::resource& at, const spi::claim_id& id,
                                   spi::server_time until) {
  run(statements_.insert_latch_change, row_of(at).id, id, number_of(until));
}

void ledger::end_latch_count(ledgers::resource& at, spi::server_time until) {
  run(statements_.end_latch_changes, row_of(at).id, number_of(until));
}

void ledger::forget_latch_changes(ledgers::resource& at, spi::server_time now) {
  run(statements_.forget_latch_changes, row_of(at).id, number_of(now));
}

}  // namespace holdfast::sqlite
