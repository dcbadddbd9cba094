// What people ask: who holds, who waits, which names are in use; and latches and listeners.
#include "stores/sqlite/life.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::sqlite {

namespace {

// For what is registered on the caller's thread, whichever that is.
constexpr duration registering_limit = std::chrono::seconds(1);

template <class Rows>
std::vector<std::int64_t> clients_of(const Rows& rows) {
  std::set<std::int64_t> clients;
  for (const claim_row& row : rows) clients.insert(row.process);
  return {clients.begin(), clients.end()};
}

// What is written down, and what will be when somebody takes those off that ended abnormally.
template <class Dead>
std::optional<duration> blocked_for(spi::server_time written, const std::vector<claim_row>& holders,
                                    const Dead& dead, spi::server_time at) {
  ledgers::resource sum;
  sum.blocked_until = written;
  for (const claim_row& row : holders) {
    if (dead.contains(row.process)) sum.block(row.lock_delay, at);
    if (row.ends <= at) sum.block(row.lock_delay, row.ends);
  }
  return sum.is_blocked(at) ? std::optional(sum.blocked_until - at) : std::nullopt;
}

}  // namespace

// Looks only: the dead are left out here and taken off by who wants the lock.
result<spi::resource_state> sqlite_store::do_inspect(const spi::resource_id& resource,
                                                     time_point deadline) {
  std::vector<claim_row> holders;
  std::vector<claim_row> line;
  spi::server_time written{};
  auto done = session_->read(deadline, [&](ledger& book) {
    holders = book.holders_of(resource);
    line = book.line_of(resource);
    written = book.blocked_until(resource);
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  peer_notifier_->any_dead(clients_of(holders), deadline);
  peer_notifier_->any_dead(clients_of(line), deadline);
  const auto dead = peer_notifier_->dead();
  std::sort(holders.begin(), holders.end(),
            [](const claim_row& left, const claim_row& right) { return left.fence < right.fence; });
  spi::resource_state state;
  const spi::server_time at = now();
  state.blocked_for = blocked_for(written, holders, *dead, at);
  for (const claim_row& row : holders) {
    if (row.ends <= at || dead->contains(row.process)) continue;
    spi::holder holder = ledgers::described_holder(row, at);
    const auto who = row.process != nobody ? peer_notifier_->address(row.process) : std::nullopt;
    if (who) {
      holder.kept_by = heir_of(*folder_, who->token).value_or("");
    }
    state.holders.push_back(std::move(holder));
  }
  for (const claim_row& row : line) {
    if (dead->contains(row.process)) continue;
    state.waiters.push_back(ledgers::described_waiter(row, at));
  }
  return state;
}

result<std::vector<spi::resource_summary>> sqlite_store::do_list(const std::string& space,
                                                                 const std::string& prefix,
                                                                 time_point deadline) {
  struct found {
    std::string name;
    std::vector<claim_row> holders;
    std::vector<claim_row> line;
    spi::server_time blocked_until;
  };
  std::vector<found> all;
  const spi::server_time asked = now();
  auto done = session_->read(deadline, [&](ledger& book) {
    for (const resource_row& row : book.named(space, prefix)) {
      if (row.unused() && !row.is_blocked(asked)) continue;
      const spi::resource_id resource = resource_of(row.key);
      all.push_back(
          {resource.name, book.holders_of(resource), book.line_of(resource), row.blocked_until});
    }
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  for (const found& each : all) {
    peer_notifier_->any_dead(clients_of(each.holders), deadline);
    peer_notifier_->any_dead(clients_of(each.line), deadline);
  }
  const auto dead = peer_notifier_->dead();
  const spi::server_time at = now();
  const auto counts = [&](const claim_row& row) {
    return row.ends > at && !dead->contains(row.process);
  };
  std::vector<spi::resource_summary> summaries;
  for (const found& each : all) {
    const auto holders = std::count_if(each.holders.begin(), each.holders.end(), counts);
    const auto waiters = std::count_if(each.line.begin(), each.line.end(), counts);
    const auto blocked = blocked_for(each.blocked_until, each.holders, *dead, at);
    if (holders + waiters == 0 && !blocked) continue;
    summaries.push_back(
        {each.name, static_cast<std::size_t>(holders), static_cast<std::size_t>(waiters), blocked});
  }
  return summaries;
}

result<spi::latch_state> sqlite_store::do_change_latch(const spi::resource_id& resource,
                                                       const spi::latch_change& change,
                                                       time_point deadline) {
  result<spi::latch_state> answer;
  effects out;
  const auto dead = peer_notifier_->dead();
  auto done = session_->write(deadline, [&](ledger& book) {
    answer = book.change_latch(step_of(out, *dead), resource, change);
  });
  if (!done) return tl::unexpected(std::move(done.error()));
  peer_notifier_->deliver(out, deadline);
  return answer;
}

result<spi::latch_state> sqlite_store::do_read_latch(const spi::resource_id& resource,
                                                     time_point deadline) {
  result<spi::latch_state> answer;
  effects out;
  const auto dead = peer_notifier_->dead();
  auto done = session_->read(
      deadline, [&](ledger& book) { answer = book.read_latch(step_of(out, *dead), resource); });
  if (!done) return tl::unexpected(std::move(done.error()));
  return answer;
}

result<void> sqlite_store::register_observer(const std::string& key) {
  if (auto begun = begin_verb(); !begun) return begun;
  effects out;
  const auto dead = peer_notifier_->dead();
  auto done = session_->write(clock::now() + registering_limit,
                              [&](ledger& book) { book.observe(step_of(out, *dead), key); });
  end_verb();
  if (done) schedule_upkeep();
  return done;
}

// Not at once and not for certain: who is told for nothing does not listen.
void sqlite_store::forget_observer(const std::string& key) {
  const auto forget = [weak = weak_from_this(), key] {
    const auto self = weak.lock();
    if (!self || !self->begin_verb()) return;
    effects out;
    const auto dead = self->peer_notifier_->dead();
    const auto done = self->session_->write(clock::now() + registering_limit, [&](ledger& book) {
      // Asked inside: a listener that comes again registers either before this, or after it.
      if (self->subscribers_->listens(key)) return;
      book.ignore(self->step_of(out, *dead), key);
    });
    static_cast<void>(done);
    self->end_verb();
  };
  worker_->post(clock::now() + registering_limit, forget, [] {});
}

result<std::unique_ptr<spi::subscription>> sqlite_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  const std::string key = key_of(resource);
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  auto subscription = subscribers_->observe(key, std::move(sink));
  if (auto done = register_observer(key); !done) return tl::unexpected(std::move(done.error()));
  return subscription;
}

result<std::unique_ptr<spi::subscription>> sqlite_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  const std::string key = key_of(resource);
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  auto subscription = subscribers_->watch_latch(key, std::move(on_change));
  if (auto done = register_observer(key); !done) return tl::unexpected(std::move(done.error()));
  return subscription;
}

}  // namespace holdfast::sqlite
