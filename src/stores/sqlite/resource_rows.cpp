#include "stores/sqlite/resource_rows.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace holdfast::sqlite {

namespace {

std::int64_t number(standing where) { return static_cast<std::int64_t>(where); }

}  // namespace

// By the number that the name had last time, which is one step less than by the name.
std::optional<resource_row> resource_rows::find(std::string_view key) {
  const auto known = known_.find(key);
  if (known != known_.end()) {
    if (auto found = load(known->second.id, key)) return found;
    known_.erase(known);
  }
  query named(statements_.resource_named, key);
  if (!named.next()) return std::nullopt;
  remember(key, named.number(0));
  return load(named.number(0), key);
}

std::optional<resource_row> resource_rows::load(std::int64_t id, std::string_view key) {
  query found(statements_.resource, id);
  if (!found.next() || found.blob(0) != key) return std::nullopt;
  resource_row row;
  row.id = id;
  row.key = key;
  row.last = static_cast<std::uint64_t>(found.number(1));
  decode_resource(found.blob(2), row);
  row.stored_last = row.last;
  row.stored_body = found.blob(2);
  return row;
}

resource_rows::memory& resource_rows::remember(std::string_view key, std::int64_t id) {
  auto known = known_.find(key);
  if (known == known_.end()) {
    if (known_.size() >= remembered_limit) known_.clear();
    known = known_.emplace(key, memory{}).first;
  }
  known->second.id = id;
  return known->second;
}

const resource_row* resource_rows::look(std::string_view key) {
  const auto known = known_.find(key);
  if (known == known_.end() || !known->second.row) return nullptr;
  memory& of = known->second;
  if (of.detours > 0) {
    --of.detours;
    return nullptr;
  }
  return &*of.row;
}

// Out of memory: whatever becomes of it, it is not what was stored.
resource_row resource_rows::recall(std::string_view key) {
  auto& known = known_.find(key)->second.row;
  resource_row row = std::move(*known);
  known.reset();
  return row;
}

bool resource_rows::exchange(resource_row at) {
  std::string body = encode(at);
  run(statements_.exchange_resource, at.id, static_cast<std::int64_t>(at.last), bytes(body),
      static_cast<std::int64_t>(at.stored_last), bytes(at.stored_body), bytes(at.key));
  memory& of = known_.find(at.key)->second;
  if (statements_.owner.changed_rows() == 0) {
    of.detours = detours;
    return false;
  }
  at.stored_last = at.last;
  at.stored_body = std::move(body);
  at.dirty = false;
  of.row = std::move(at);
  return true;
}

resource_row resource_rows::make(std::string_view key, spi::server_time now) {
  resource_row row;
  row.key = key;
  {
    query meta(statements_.meta);
    if (meta.next()) row.last = static_cast<std::uint64_t>(meta.number(1));
  }
  const std::string space = space_of(key);
  {
    query observers(statements_.observers, key, bytes(space));
    row.observed = observers.next();
  }
  const std::string body = encode(row);
  run(statements_.insert_resource, key, static_cast<std::int64_t>(row.last), bytes(body));
  row.id = statements_.owner.last_row();
  if (row.id % forgetting_step == 0) forget_some(now);
  return row;
}

void resource_rows::save(resource_row& at) {
  if (!at.dirty) return;
  std::string body = encode(at);
  run(statements_.update_resource, at.id, static_cast<std::int64_t>(at.last), bytes(body));
  at.stored_last = at.last;
  at.stored_body = std::move(body);
  at.dirty = false;
  memory& of = remember(at.key, at.id);
  if (at.plain()) {
    of.row = at;
  } else {
    of.row.reset();
  }
}

void resource_rows::forget_some(spi::server_time now) {
  std::vector<std::int64_t> idle;
  std::uint64_t greatest = 0;
  std::int64_t seen = 0;
  {
    query rows(statements_.resources_from, forgotten_up_to_, 2 * forgetting_step);
    while (rows.next()) {
      resource_row row;
      decode_resource(rows.blob(3), row);
      forgotten_up_to_ = rows.number(0);
      ++seen;
      if (!row.unused() || row.kind == kind::latch || row.observed || row.blocked_until > now)
        continue;
      idle.push_back(rows.number(0));
      greatest = std::max(greatest, static_cast<std::uint64_t>(rows.number(2)));
    }
  }
  if (seen < 2 * forgetting_step) forgotten_up_to_ = 0;  // from the start again
  if (idle.empty()) return;
  run(statements_.set_floor, static_cast<std::int64_t>(greatest));
  // The newest is the one that is being made.
  for (const std::int64_t id : idle) {
    if (id != statements_.owner.last_row()) run(statements_.delete_resource, id);
  }
}

std::optional<claim_row> resource_rows::at_place(const resource_row& at, standing where,
                                                 std::int64_t place, const spi::claim_id& id) {
  query found(statements_.claim, at.id, number(where), place);
  if (!found.next()) return std::nullopt;
  claim_row row = decode_claim(found.blob(0));
  if (row.id != id) return std::nullopt;
  return row;
}

std::optional<claim_row> resource_rows::holder(const resource_row& at, std::int64_t place,
                                               const spi::claim_id& id) {
  if (at.inline_holder && at.inline_holder->place == place && at.inline_holder->id == id)
    return at.inline_holder;
  if (at.holders == (at.inline_holder ? 1U : 0U)) return std::nullopt;
  return at_place(at, standing::holds, place, id);
}

std::optional<claim_row> resource_rows::waiter(const resource_row& at, std::int64_t place,
                                               const spi::claim_id& id) {
  for (const claim_row& row : at.line) {
    if (row.place == place && row.id == id) return row;
  }
  if (at.waiting == at.line.size()) return std::nullopt;
  return at_place(at, standing::waits, place, id);
}

std::vector<claim_row> resource_rows::all(const resource_row& at, standing where,
                                          std::size_t limit) {
  std::vector<claim_row> rows;
  query found(statements_.claims, at.id, number(where), static_cast<std::int64_t>(limit));
  while (found.next()) rows.push_back(decode_claim(found.blob(0)));
  return rows;
}

std::vector<claim_row> resource_rows::all_holders(const resource_row& at, std::size_t limit) {
  std::vector<claim_row> rows;
  if (at.inline_holder) rows.push_back(*at.inline_holder);
  if (at.holders <= rows.size() || limit <= rows.size()) return rows;
  auto others = all(at, standing::holds, limit - rows.size());
  std::move(others.begin(), others.end(), std::back_inserter(rows));
  return rows;
}

std::vector<std::int64_t> resource_rows::holding_clients(const resource_row& at,
                                                         std::size_t limit) {
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

void resource_rows::insert(const resource_row& at, standing where, const claim_row& row) {
  const std::string body = encode(row);
  run(statements_.insert_claim, at.id, number(where), row.place, row.process, bytes(body));
}

void resource_rows::erase(const resource_row& at, standing where, std::int64_t place) {
  run(statements_.delete_claim, at.id, number(where), place);
}

void resource_rows::add_holder(resource_row& at, const claim_row& row) {
  if (at.inline_holder) {
    insert(at, standing::holds, row);
  } else {
    at.inline_holder = row;
  }
}

void resource_rows::remove_holder(resource_row& at, const claim_row& row) {
  if (at.inline_holder && at.inline_holder->place == row.place) {
    at.inline_holder.reset();
  } else {
    erase(at, standing::holds, row.place);
  }
}

void resource_rows::change_holder(resource_row& at, const claim_row& now) {
  if (at.inline_holder && at.inline_holder->place == now.place) {
    at.inline_holder = now;
  } else {
    erase(at, standing::holds, now.place);
    insert(at, standing::holds, now);
  }
}

const claim_row* resource_rows::after(const resource_row& at, std::int64_t place) {
  for (const claim_row& row : at.line) {
    if (row.place > place) return &row;
  }
  if (at.waiting == at.line.size()) return nullptr;
  query found(statements_.after, at.id, place);
  if (!found.next()) return nullptr;
  passing_ = decode_claim(found.blob(0));
  return &passing_;
}

const claim_row* resource_rows::before(const resource_row& at, std::int64_t place) {
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

std::vector<claim_row> resource_rows::line(const resource_row& at, std::size_t limit) {
  std::vector<claim_row> rows(
      at.line.begin(),
      at.line.begin() + static_cast<std::ptrdiff_t>(std::min(limit, at.line.size())));
  if (rows.size() == limit || at.waiting == at.line.size()) return rows;
  auto others = all(at, standing::waits, limit - rows.size());
  std::move(others.begin(), others.end(), std::back_inserter(rows));
  return rows;
}

std::vector<claim_row> resource_rows::waits_of(const resource_row& at, std::int64_t client) {
  std::vector<claim_row> rows;
  std::copy_if(at.line.begin(), at.line.end(), std::back_inserter(rows),
               [client](const claim_row& row) { return row.process == client; });
  query found(statements_.waits_of_client, at.id, client);
  while (found.next()) rows.push_back(decode_claim(found.blob(0)));
  return rows;
}

bool resource_rows::has_room(const resource_row& at, const claim_row& waiter) {
  return at.line.size() < line_limit &&
         at.key.size() + encoded_size(at) + encoded_size(waiter) <= row_limit;
}

void resource_rows::add_waiter(resource_row& at, const claim_row& row) {
  if (at.line.size() == at.waiting && has_room(at, row)) {
    at.line.push_back(row);
  } else {
    insert(at, standing::waits, row);
  }
}

void resource_rows::remove_waiter(resource_row& at, const claim_row& row) {
  const auto found = std::find_if(at.line.begin(), at.line.end(),
                                  [&](const claim_row& each) { return each.place == row.place; });
  if (found != at.line.end()) {
    at.line.erase(found);
  } else {
    erase(at, standing::waits, row.place);
  }
  if (at.line.empty() && at.waiting > 0) refill(at);
}

// Several at once: their page is then written once for all of them.
void resource_rows::refill(resource_row& at) {
  for (claim_row& row : all(at, standing::waits, line_limit)) {
    if (!has_room(at, row)) break;
    at.line.push_back(std::move(row));
  }
  if (!at.line.empty()) run(statements_.delete_line, at.id, at.line.back().place);
}

}  // namespace holdfast::sqlite
