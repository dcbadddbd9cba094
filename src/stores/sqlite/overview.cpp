// What people ask: who holds, who waits, which names are in use; and latches and listeners.
#include "stores/sqlite/life.hpp"
#include "stores/sqlite/sqlite_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sqlite {

namespace {

// For what is registered on the caller's thread, whichever that is.
constexpr duration registering_limit = std::chrono::seconds(1);

std::optional<duration> blocked_for(const contents& of, spi::server_time at) {
  return of.blocked_until > at ? std::optional(of.blocked_until - at) : std::nullopt;
}

}  // namespace

// Looks only: the dead, and what is over, are taken off by who wants the lock. It is blocked by what is
// written down, and by what will be when somebody takes those off that ended abnormally.
void sqlite_store::leave_out_dead(contents& of, time_point deadline) {
  std::set<std::int64_t> clients;
  for (const auto* rows : {&of.holders, &of.line}) {
    for (const claim_row& row : *rows) clients.insert(row.process);
  }
  peer_notifier_->any_dead({clients.begin(), clients.end()}, deadline);
  const auto dead = peer_notifier_->dead();
  const spi::server_time at = now();
  ledgers::resource sum;
  sum.blocked_until = of.blocked_until;
  const auto over = [&](const claim_row& row) {
    return row.ends <= at || dead->contains(row.process);
  };
  for (const claim_row& row : of.holders) {
    if (over(row)) sum.block(row.lock_delay, dead->contains(row.process) ? at : row.ends);
  }
  of.blocked_until = sum.blocked_until;
  std::erase_if(of.holders, over);
  std::erase_if(of.line, over);
}

void sqlite_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  const auto verb = [this, resource](time_point deadline) -> result<spi::resource_state> {
    contents found;
    auto read = session_->read(deadline, [&](ledger& book) { found = book.look_at(resource); });
    if (!read) return tl::unexpected(std::move(read.error()));
    leave_out_dead(found, deadline);
    std::ranges::sort(found.holders, {}, &claim_row::fence);
    const spi::server_time at = now();
    spi::resource_state state;
    state.blocked_for = blocked_for(found, at);
    for (const claim_row& row : found.holders) {
      spi::holder holder = ledgers::described_holder(row, at);
      const auto who = row.process != nobody ? peer_notifier_->address(row.process) : std::nullopt;
      if (who) holder.kept_by = heir_of(*folder_, who->token).value_or("");
      state.holders.push_back(std::move(holder));
    }
    for (const claim_row& row : found.line) {
      state.waiters.push_back(ledgers::described_waiter(row, at));
    }
    return state;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::list(const std::string& space, const std::string& prefix,
                        const spi::op_context& context,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  const auto verb = [this, space,
                     prefix](time_point deadline) -> result<std::vector<spi::resource_summary>> {
    std::vector<contents> all;
    auto read =
        session_->read(deadline, [&](ledger& book) { all = book.look_at_all(space, prefix); });
    if (!read) return tl::unexpected(std::move(read.error()));
    std::vector<spi::resource_summary> summaries;
    for (contents& each : all) {
      leave_out_dead(each, deadline);
      const auto blocked = blocked_for(each, now());
      if (each.holders.empty() && each.line.empty() && !blocked) continue;
      summaries.push_back({each.name, each.holders.size(), each.line.size(), blocked});
    }
    return summaries;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  const auto verb = [this, resource, change](time_point deadline) {
    effects out;
    result<spi::latch_state> answer;
    auto written = write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      answer = book.change_latch(step, resource, change);
    });
    if (!written) return result<spi::latch_state>(tl::unexpected(std::move(written.error())));
    peer_notifier_->deliver(out, deadline);
    return answer;
  };
  perform(nullptr, context, std::move(done), verb);
}

void sqlite_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  const auto verb = [this, resource](time_point deadline) {
    effects out;
    result<spi::latch_state> answer;
    const auto dead = peer_notifier_->dead();
    auto read = session_->read(
        deadline, [&](ledger& book) { answer = book.read_latch(step_of(out, *dead), resource); });
    if (!read) return result<spi::latch_state>(tl::unexpected(std::move(read.error())));
    return answer;
  };
  perform(nullptr, context, std::move(done), verb);
}

result<std::unique_ptr<spi::subscription>> sqlite_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  const std::string key = key_of(resource);
  return registered(key, subscribers_->observe(key, std::move(sink)));
}

result<std::unique_ptr<spi::subscription>> sqlite_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (born_ != fork_generation()) return failure(errc::cancelled, "sqlite, in a forked child");
  const std::string key = key_of(resource);
  return registered(key, subscribers_->watch_latch(key, std::move(on_change)));
}

result<std::unique_ptr<spi::subscription>> sqlite_store::registered(
    const std::string& key, std::unique_ptr<spi::subscription> subscription) {
  if (auto begun = begin_verb(); !begun) return tl::unexpected(std::move(begun.error()));
  effects out;
  auto done = write(clock::now() + registering_limit, out, nullptr,
                    [&](ledger& book, const moment& step) { book.observe(step, key); });
  end_verb();
  if (!done) return tl::unexpected(std::move(done.error()));
  schedule_upkeep();
  return subscription;
}

// Not at once and not for certain: who is told for nothing does not listen.
void sqlite_store::forget_observer(const std::string& key) {
  const time_point deadline = clock::now() + registering_limit;
  worker_->post(deadline, [weak = weak_from_this(), key, deadline](const result<void>& begun) {
    const auto self = weak.lock();
    if (!begun || !self || !self->begin_verb()) return;
    effects out;
    static_cast<void>(self->write(deadline, out, nullptr, [&](ledger& book, const moment& step) {
      // Asked inside: a listener that comes again registers either before this, or after it.
      if (!self->subscribers_->listens(key)) book.ignore(step, key);
    }));
    self->end_verb();
  });
}

}  // namespace holdfast::sqlite
