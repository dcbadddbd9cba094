// The ledger's storage: the rows of the resource that a verb is about, and what is known of clients.
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/life.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

// Every resource of this ledger is one of these.
resource_row& row_of(ledgers::resource& at) { return static_cast<resource_row&>(at); }
const resource_row& row_of(const ledgers::resource& at) {
  return static_cast<const resource_row&>(at);
}

}  // namespace

resource_row* ledger::load(std::string_view key) {
  loaded_ = resource_rows_.find(key);
  return loaded_ ? &*loaded_ : nullptr;
}

ledgers::resource* ledger::find(const spi::resource_id& id) { return load(key_of(id)); }

ledgers::resource& ledger::make(const spi::resource_id& id, spi::server_time now) {
  return loaded_.emplace(resource_rows_.make(key_of(id), now));
}

void ledger::save(const moment& step, ledgers::resource& at) {
  address_news(step, row_of(at));
  resource_rows_.save(row_of(at));
}

spi::resource_id ledger::id_of(const ledgers::resource& at) const {
  return resource_of(row_of(at).key);
}

std::optional<claim_row> ledger::holder(const moment& step, ledgers::resource& at,
                                        const spi::claim_id& id) {
  if (*step.place == ledgers::nowhere) return std::nullopt;
  if (*step.place != ledgers::to_be_found) {
    return resource_rows_.holder(row_of(at), *step.place, id);
  }
  for (claim_row& row : resource_rows_.all_holders(row_of(at), ledger_limits::holder_limit)) {
    if (row.id == id) return std::move(row);
  }
  return std::nullopt;
}

std::optional<claim_row> ledger::waiter(const moment& step, ledgers::resource& at,
                                        const spi::claim_id& id) {
  if (*step.place <= ledgers::nowhere) return std::nullopt;
  return resource_rows_.waiter(row_of(at), *step.place, id);
}

std::vector<claim_row> ledger::holders(const ledgers::resource& at, std::size_t limit) {
  return resource_rows_.all_holders(row_of(at), limit);
}

std::vector<claim_row> ledger::ended_holders(ledgers::resource& at, spi::server_time now) {
  std::vector<claim_row> ended;
  at.next_end = never;
  at.dirty = true;
  for (claim_row& row : holders(at, ledger_limits::holder_limit)) {
    if (row.ends <= now) {
      ended.push_back(std::move(row));
    } else {
      at.next_end = std::min(at.next_end, row.ends);
    }
  }
  return ended;
}

// Those who come to hold while somebody waits learn it with their grant.
std::vector<claim_row> ledger::holders_to_tell(ledgers::resource& at) {
  if (at.waiting > 1) return {};
  return holders(at, ledger_limits::told_limit);
}

const claim_row* ledger::next_waiter(ledgers::resource& at, std::int64_t place) {
  return resource_rows_.after(row_of(at), place);
}

const claim_row* ledger::previous_waiter(ledgers::resource& at, std::int64_t place) {
  return resource_rows_.before(row_of(at), place);
}

// Places and fences are taken from the same numbers.
std::int64_t ledger::next_place(ledgers::resource& at) {
  return static_cast<std::int64_t>(at.last + 1);
}

void ledger::put_holder(ledgers::resource& at, const claim_row& row) {
  resource_rows_.add_holder(row_of(at), row);
}

void ledger::erase_holder(ledgers::resource& at, const claim_row& row) {
  resource_rows_.remove_holder(row_of(at), row);
}

void ledger::replace_holder(ledgers::resource& at, const claim_row&, const claim_row& now) {
  resource_rows_.change_holder(row_of(at), now);
}

void ledger::put_waiter(ledgers::resource& at, const claim_row& row) {
  at.last = static_cast<std::uint64_t>(row.place);
  resource_rows_.add_waiter(row_of(at), row);
}

void ledger::erase_waiter(ledgers::resource& at, const claim_row& row) {
  row_of(at).head_told = false;  // it may have been the head
  resource_rows_.remove_waiter(row_of(at), row);
}

bool ledger::tell_free(ledgers::resource& at, const claim_row&) {
  at.dirty = true;
  return !std::exchange(row_of(at).head_told, true);
}

void ledger::taken(ledgers::resource& at) { row_of(at).head_told = false; }

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

spi::server_time ledger::last_word(const moment& step, const claim_row& waiting) {
  if (beside_ == nullptr || waiting.process == step.self) return step.now;
  query client(statements_.client, waiting.process);
  if (!client.next()) return waiting.since;
  return std::max(waiting.since, sqlite::last_word(*beside_, std::string(client.blob(0))));
}

// Those who have just come are not asked.
bool ledger::absent(const moment& step, const claim_row& waiting) {
  const spi::server_time limit = step.now - ledger_limits::absent;
  return waiting.since <= limit && last_word(step, waiting) <= limit;
}

// The head of the line watches all who hold, everybody else the one before it: when that one dies,
// it asks again and learns whom to watch then. Who is absent watches nobody, so its neighbour does.
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
  out.blockers = resource_rows_.holding_clients(row_of(at), limit);
  const spi::server_time end = at.is_blocked(step.now) ? at.blocked_until : at.next_end;
  return std::min(ledger_limits::recheck, end - step.now);
}

void ledger::watch_holders(const moment& step, ledgers::resource& at) {
  static_cast<effects&>(step.out).blockers =
      resource_rows_.holding_clients(row_of(at), ledger_limits::told_limit);
}

}  // namespace holdfast::sqlite
