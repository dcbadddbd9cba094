// The work on one claim: one flow at a time, which does what is wanted of it in turn. Leaving comes
// first: who leaves must not be granted on its way out.
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

void zookeeper_store::kick(const entry_ptr& which) {
  {
    const lock_guard lock(mutex_);
    which->dirty = true;
    if (std::exchange(which->running, true)) return;
  }
  run(shared_from_this(), which);
}

flow zookeeper_store::run(self_ptr self, entry_ptr which) {
  for (;;) {
    bool leaves = false;
    std::optional<entry::change> change;
    net::patience until;
    {
      const lock_guard lock(self->mutex_);
      const bool over = which->where == entry::phase::over;
      if (over || !std::exchange(which->dirty, false)) {
        which->running = false;
        if (!over) co_return;
      }
      if (over) break;
      leaves = !which->leaves.empty() || which->ending;
      until = which->until;
      if (!leaves && !which->changes.empty()) {
        change = std::move(which->changes.front());
        which->changes.erase(which->changes.begin());
        which->dirty = !which->changes.empty() || !which->attempts.empty();
      }
    }
    if (leaves) {
      const result<spi::departure> left = co_await depart(self, which, until);
      self->settle_leave(which, left);
    } else if (change) {
      result<spi::granted> changed = co_await change_mode(self, which, change->to, until);
      change->done(std::move(changed));
    } else {
      {
        const lock_guard lock(self->mutex_);
        which->expects_end = false;
      }
      result<spi::outcome> placed = co_await place(self, which, until);
      self->settle(which, std::move(placed));
    }
  }
  // Forgotten meanwhile: whoever came too late learns it.
  self->gone(which, {errc::lost, "the claim is over"});
}

task<result<spi::outcome>> zookeeper_store::place(self_ptr self, entry_ptr which,
                                                  net::patience until) {
  if (which->permit()) co_return co_await place_permit(self, which, until);
  co_return co_await place_lock(self, which, until);
}

// What became of a node whose making was not answered. Behind a barrier: a server to which we moved
// may be behind the one that made it.
task<result<void>> zookeeper_store::recover(self_ptr self, entry_ptr which, net::patience until) {
  const std::string leases = which->path + "/" + std::string(leases_folder);
  std::vector<question> batch;
  batch.push_back({make_barrier(), nullptr, {}});
  batch.push_back({make_get_children(which->parent, false), nullptr, {}});
  if (which->permit()) batch.push_back({make_get_children(leases, false), nullptr, {}});
  const replies answers = co_await asking(which->life, std::move(batch), until);
  std::vector<std::string> found;
  for (std::size_t i = 1; i < answers.size(); ++i) {
    if (!answers[i]) co_return tl::unexpected(answers[i].error());
    if (answers[i]->code == code::no_node) continue;
    const auto names = read_children(answers[i]->body);
    if (answers[i]->code != code::ok || !names) {
      co_return tl::unexpected(refusal("list", which->parent, answers[i]->code));
    }
    const std::string mine = protection_of(which->naming, which->claim->id);
    for (const std::string& each : *names) {
      if (each.starts_with(mine)) found.push_back((i == 1 ? which->parent : leases) + "/" + each);
    }
  }
  std::vector<std::string> ours;
  std::int64_t owner = 0;
  std::int64_t created = 0;
  for (const std::string& each : found) {
    question look{make_exists(each, false), nullptr, {}};
    const result<reply> seen = co_await ask_one(which->life, std::move(look), until);
    if (!seen) co_return tl::unexpected(seen.error());
    const auto known = read_stat(seen->body);
    if (seen->code != code::ok || !known) continue;
    if (known->owner == seen->session) {
      ours.push_back(each);
      owner = seen->session;
      created = known->created;
      continue;
    }
    // Of a session that is over: it will go by itself, but must not stand before us until then.
    question remove{make_remove(each), nullptr, {}};
    const result<reply> removed = co_await ask_one(which->life, std::move(remove), until);
    if (!removed) co_return tl::unexpected(removed.error());
  }
  const lock_guard lock(self->mutex_);
  which->uncertain = false;
  for (const std::string& each : ours) {
    if (each.starts_with(leases + "/")) {
      which->leases.push_back(each);
    } else {
      which->node = each.substr(which->parent.size() + 1);
    }
  }
  if (!ours.empty()) {
    which->owner = owner;
    which->created = created;
  }
  co_return result<void>{};
}

task<result<spi::departure>> zookeeper_store::depart(self_ptr self, entry_ptr which,
                                                     net::patience until) {
  bool uncertain = false;
  {
    const lock_guard lock(self->mutex_);
    uncertain = which->uncertain;
  }
  if (uncertain) {
    const result<void> known = co_await recover(self, which, until);
    if (!known) co_return tl::unexpected(known.error());
  }
  std::vector<question> batch;
  std::int64_t owner = 0;
  bool held = false;
  {
    const lock_guard lock(self->mutex_);
    which->expects_end = true;
    owner = which->owner;
    held = which->where == entry::phase::held;
    if (!which->node.empty()) batch.push_back({make_remove(which->node_path()), nullptr, {}});
    for (const std::string& each : which->leases) batch.push_back({make_remove(each), nullptr, {}});
  }
  if (batch.empty()) co_return spi::departure::gone;
  const replies answers = co_await asking(which->life, std::move(batch), until, owner);
  bool removed = false;
  for (const result<reply>& each : answers) {
    if (!each && each.error() == errc::lost) co_return spi::departure::gone;
    if (!each) co_return tl::unexpected(each.error());
    removed = removed || each->code == code::ok;
    if (each->code != code::ok && each->code != code::no_node) {
      co_return tl::unexpected(refusal("delete", which->path, each->code));
    }
  }
  const lock_guard lock(self->mutex_);
  which->node.clear();
  which->leases.clear();
  if (!removed) co_return spi::departure::gone;
  co_return held ? spi::departure::was_holder : spi::departure::was_waiting;
}

void zookeeper_store::settle(const entry_ptr& which, result<spi::outcome> outcome) {
  std::vector<spi::completion<spi::outcome>> attempts;
  std::shared_ptr<spi::wakeup> tell;
  {
    const lock_guard lock(mutex_);
    if (which->where == entry::phase::over) return;  // the flow ends with gone()
    attempts = std::exchange(which->attempts, {});
    if (!outcome && outcome.error() != errc::lost) {
      which->armed = false;
      const bool definite = outcome.error() != errc::unavailable;
      const bool nothing = which->node.empty() && which->leases.empty() && !which->uncertain;
      outcome.error().unsent = outcome.error().unsent && nothing;
      if (definite && nothing) {
        forget(which);
      } else if (definite && which->where != entry::phase::held) {
        // Who is refused is not heard of any more: what it made so far is ours to remove.
        which->ending = true;
        which->dirty = true;
      }
    } else if (outcome && std::holds_alternative<spi::granted>(*outcome)) {
      const time_point at = now();
      const bool first = pass_to(*which, entry::phase::held) != entry::phase::held;
      const time_point since = which->granted_at == time_point{} ? at : which->granted_at;
      const spi::granted grant = grant_of(*which, at);
      // What is worth nothing is believed by nobody: the time of a lease that is not renewed has not begun.
      if (grant.ttl > duration{0}) which->granted_at = since;
      const spi::claim& claim = *which->claim;
      which->end_at = claim.renewed ? at + std::max(claim.ttl, grant.ttl) + claim.lock_delay
                                    : since + claim.ttl + claim.lock_delay;
      outcome = grant;
      if (first && attempts.empty()) tell = which->wakeup;
    } else if (outcome) {
      auto& blocked = std::get<spi::blocked>(*outcome);
      blocked.at = spi::server_time(now().time_since_epoch());
      pass_to(*which, entry::phase::waiting);
      if (!blocked.queued) forget(which);
    }
  }
  for (auto& each : attempts) each(outcome);
  if (tell && !closed_) tell->notify(std::get<spi::granted>(*outcome));
  if (!outcome && outcome.error() == errc::lost) gone(which, outcome.error());
}

void zookeeper_store::settle_leave(const entry_ptr& which, const result<spi::departure>& outcome) {
  constexpr duration pause = std::chrono::seconds(1);  // until the store tries again by itself
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<entry::change> changes;
  {
    const lock_guard lock(mutex_);
    leaves = std::exchange(which->leaves, {});
    if (outcome) {
      attempts = std::exchange(which->attempts, {});
      changes = std::exchange(which->changes, {});
      forget(which);
    } else if (std::exchange(which->ending, false)) {
      which->end_at = now() + pause;
    }
  }
  for (auto& each : leaves) each(outcome);
  for (auto& each : attempts) each(failure(errc::lost, "left before"));
  for (auto& each : changes) each.done(failure(errc::lost, "left before"));
}

void zookeeper_store::gone(const entry_ptr& which, const error& why) {
  std::vector<spi::completion<spi::outcome>> attempts;
  std::vector<spi::completion<spi::departure>> leaves;
  std::vector<entry::change> changes;
  std::shared_ptr<spi::wakeup> tell;
  {
    const lock_guard lock(mutex_);
    attempts = std::exchange(which->attempts, {});
    leaves = std::exchange(which->leaves, {});
    changes = std::exchange(which->changes, {});
    if (which->where != entry::phase::over) tell = which->wakeup;
    forget(which);
  }
  for (auto& each : attempts) each(failure(errc::lost, why.detail));
  for (auto& each : leaves) each(spi::departure::gone);
  for (auto& each : changes) each.done(failure(errc::lost, why.detail));
  if (tell && !closed_) tell->gone(why);
}

}  // namespace holdfast::zookeeper
