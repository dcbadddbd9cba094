// Count-down latches, and who observes what: the rest of what is written.
#include "stores/sqlite/ledger.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace holdfast::sqlite {

namespace {

constexpr std::uint32_t max_latch_count = 1'000'000;
constexpr duration default_latch_life = std::chrono::hours(24);
// Ids of an earlier count are known this much longer: a late repetition must not count on the next.
constexpr duration remembered = std::chrono::seconds(60);

}  // namespace

// A latch whose life is over is unset.
void ledger::end_latch(const moment& step, resource_row& at) {
  if (at.kind != kind::latch || at.next_end > step.now) return;
  run(statements_.delete_latch, at.id);
  run(statements_.delete_latch_changes, at.id);
  at.kind = kind::idle;
  at.next_end = never;
  at.dirty = true;
}

bool ledger::repeated(const moment& step, const resource_row& at, const spi::claim_id& id) {
  query found(statements_.latch_change, at.id, id, step.now);
  return found.next();
}

result<spi::latch_state> ledger::change_latch(const moment& step, const spi::resource_id& resource,
                                              const spi::latch_change& change) {
  if (change.count == 0 || change.count > max_latch_count) {
    return failure(errc::invalid, "a latch counts from 1 to " + std::to_string(max_latch_count));
  }
  const std::string key = key_of(resource);
  auto found = resource_rows_.find(key);
  if (!found && change.what == spi::latch_change::kind::down) {
    return failure(errc::not_held, "the latch is unset");
  }
  resource_row at = found ? std::move(*found) : resource_rows_.make(key, step.now);
  end_latch(step, at);
  promote(step, at);
  auto answer = count_latch(step, at, change);
  save(step, at);
  return answer;
}

result<spi::latch_state> ledger::count_latch(const moment& step, resource_row& at,
                                             const spi::latch_change& change) {
  if (!at.unused()) {
    return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
  const bool sets = change.what == spi::latch_change::kind::set;
  if (at.kind != kind::latch && !sets) return failure(errc::not_held, "the latch is unset");
  std::uint32_t count = 0;
  {
    query latch(statements_.latch, at.id);
    if (latch.next()) count = static_cast<std::uint32_t>(latch.number(0));
  }
  if (repeated(step, at, change.id)) return spi::latch_state{count};
  if (sets && count > 0) {
    return failure(errc::conflict, "the latch is set, its count is " + std::to_string(count));
  }
  if (!sets && count == 0) {  // counts nowhere, and not on the next count either
    run(statements_.insert_latch_change, at.id, change.id, after(step.now, remembered));
    return spi::latch_state{0};
  }
  if (sets) run(statements_.end_latch_changes, at.id, after(step.now, remembered));
  run(statements_.forget_latch_changes, at.id, step.now);
  run(statements_.insert_latch_change, at.id, change.id, never);
  count = sets ? change.count : count - std::min(count, change.count);
  const duration life = change.life > duration{0} ? change.life : default_latch_life;
  run(statements_.set_latch, at.id, static_cast<std::int64_t>(count), life.count());
  at.kind = kind::latch;
  at.next_end = after(step.now, life);
  at.dirty = true;
  if (at.observed) step.out.news.push_back({at.key, {}, true, {}});
  return spi::latch_state{count};
}

result<spi::latch_state> ledger::read_latch(const moment& step, const spi::resource_id& resource) {
  const auto at = resource_rows_.find(key_of(resource));
  if (!at) return spi::latch_state{};
  if (!at->unused()) {
    return failure(errc::name_conflict, "the name is in use as a lock or semaphore");
  }
  if (at->kind != kind::latch || at->next_end <= step.now) return spi::latch_state{};
  query latch(statements_.latch, at->id);
  if (!latch.next()) return spi::latch_state{};
  return spi::latch_state{static_cast<std::uint32_t>(latch.number(0))};
}

// A key that ends with its '/' is a whole namespace.
void ledger::observe(const moment& step, std::string_view key) {
  run(statements_.insert_observer, key, step.self);
  std::vector<resource_row> touched;
  if (key.find('/') + 1 == key.size()) {
    const spi::resource_id space = resource_of(key);
    touched = named(space.space, {});
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

instant ledger::blocked_until(const spi::resource_id& resource) {
  const auto at = resource_rows_.find(key_of(resource));
  return at ? at->blocked_until : 0;
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

}  // namespace holdfast::sqlite
