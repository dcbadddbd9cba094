// Joining the queue, waiting in it, and leaving it.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::etcd {

namespace {

std::string data_in(const entry& which) {
  const spi::claim& claim = *which.claim;
  std::string data = claim.mode == spi::mode::permit
                         ? stores::data_of(claim.payload, {claim.permits, claim.max})
                         : claim.payload;
  return which.id == spi::to_hex(claim.id) ? data : with_owner(std::move(data), claim.id);
}

}  // namespace

etcd_store::look::of etcd_store::scope_of(spi::mode mode) noexcept {
  return mode == spi::mode::shared ? look::of::no_readers : look::of::all;
}

std::vector<key_range> etcd_store::ranges_of(look::of scope, const std::string& prefix,
                                             const std::string& own) {
  if (scope == look::of::own) return {keys_with(own)};
  const spi::mode mode = scope == look::of::no_readers ? spi::mode::shared : spi::mode::exclusive;
  return keys_around(prefix, mode, own);
}

// An exclusive claim that waits only needs to know the one before it, however long the queue is.
range_options etcd_store::limits_of(look::of scope, std::int64_t created) {
  range_options how;
  if (scope != look::of::last_two) return how;
  how.limit = 2;
  how.newest_first = true;
  how.created_until = created;
  return how;
}

// From the answers to keys_around(), of which the first has this index.
etcd_store::look etcd_store::seen_in(txn_answer& done, std::size_t first, look::of scope) {
  look seen{scope, done.header.revision, 0, {}};
  for (std::size_t i = first; i < done.parts.size(); ++i) {
    range_answer& part = done.parts[i].range;
    seen.count += part.count;
    std::ranges::move(part.kvs, std::back_inserter(seen.kvs));
  }
  return seen;
}

// Nothing that the request asked for was done, or ever will be.
bool etcd_store::is_definite(const result<reply>& answer, const result<txn_answer>& done) {
  if (done) return false;
  return answer ? !answer->ok() && done.error() != errc::unavailable : answer.error().unsent;
}

void etcd_store::lease_is_gone(entry& which, std::int64_t lease) {
  {
    const lock_guard lock(mutex_);
    which.uncertain = false;  // what an earlier request put is gone with the lease
    which.owner = 0;
  }
  which.life->ended(lease);
}

// Can be repeated after a lost answer: the key is put once, and a repetition is shown its own key.
// A tombstone says that the claim was left.
task<result<etcd_store::look>> etcd_store::put_in_line(self_ptr self, entry_ptr which,
                                                       net::patience until) {
  const spi::claim& claim = *which->claim;
  const std::string tombstone = tombstone_of(*self->options_, claim.id);
  for (int round = 0; round < look_limit; ++round) {
    const std::int64_t lease = co_await value_of(lease_keeper::ready(which->life, until));
    bool before = false;
    {
      const lock_guard lock(self->mutex_);
      which->owner = lease;
      before = std::exchange(which->uncertain, true);
    }
    const look::of scope =
        claim.mode == spi::mode::exclusive ? look::of::last_two : scope_of(claim.mode);
    const auto around = keys_around(which->prefix, claim.mode, which->key);
    txn_writer step;
    step.created({which->key}, txn_writer::relation::equal, 0)
        .created({tombstone}, txn_writer::relation::equal, 0)
        .then_put(put_body(which->key, data_in(*which), lease))
        .else_range(range_body({which->key}));
    for (const key_range& each : around) {
      const std::string body = range_body(each, limits_of(scope, 0));
      step.then_range(body).else_range(body);
    }
    std::vector<call> calls;
    calls.push_back(std::move(step).made());
    lease_note proof;
    const replies answers = co_await lease_keeper::ask(
        which->life, lease, std::move(calls), lease_keeper::renews::if_stale, until, proof);
    result<txn_answer> done = txn_in(answers.front(), "put", which->key);
    if (!done && done.error() == errc::lost) {
      self->lease_is_gone(*which, lease);
      continue;
    }
    const lock_guard lock(self->mutex_);
    which->uncertain = before || !is_definite(answers.front(), done);
    if (!done) co_return tl::unexpected(done.error());
    if (done->parts.size() != 1 + around.size()) {
      co_return failure(errc::unavailable, "etcd: an unexpected answer to a transaction");
    }
    which->uncertain = false;
    which->late = which->late || before;
    const auto& own = done->parts[0].range.kvs;
    if (!done->succeeded && own.empty()) co_return failure(errc::lost, "left before");
    if (!done->succeeded) which->owner = own.front().lease;
    if (which->owner == lease) which->life->accept(proof);
    which->created = done->succeeded ? done->header.revision : own.front().created;
    which->fenced = which->created;
    co_return seen_in(*done, 1, scope);
  }
  co_return failure(errc::unavailable, "etcd: leases end as soon as they are granted");
}

task<result<etcd_store::look>> etcd_store::read_line(self_ptr self, entry_ptr which, look::of scope,
                                                     net::patience until) {
  std::int64_t owner = 0;
  std::int64_t created = 0;
  {
    const lock_guard lock(self->mutex_);
    owner = which->owner;
    created = which->created;
  }
  std::vector<call> calls;
  calls.push_back(
      read_call(ranges_of(scope, which->prefix, which->key), limits_of(scope, created)));
  lease_note proof;
  const replies answers = co_await lease_keeper::ask(which->life, owner, std::move(calls),
                                                     lease_keeper::renews::if_stale, until, proof);
  txn_answer done = co_await value_of(txn_in(answers.front(), "read", which->prefix));
  look seen = seen_in(done, 0, scope);
  for (const key_value& each : seen.kvs) {
    if (each.key == which->key && each.lease == owner) which->life->accept(proof);
  }
  co_return seen;
}

// A try writes only where it may succeed: even a transaction that changes nothing goes through the
// log. Granted: it may try.
task<result<spi::outcome>> etcd_store::try_first(self_ptr self, entry_ptr which,
                                                 net::patience until) {
  const spi::claim& claim = *which->claim;
  look::of scope = scope_of(claim.mode);
  for (;;) {
    const line order = co_await value_of(look_at(self, which->prefix, scope, which->key, until));
    if (scope != look::of::all && doubtful(order, claim, order.claims().size())) {
      scope = look::of::all;
      continue;
    }
    const std::size_t at = order.blocker_of_next(claim.mode, claim.permits, claim.max);
    if (at != line::none && self->leaves_here(*which, order.claims()[at], order.revision()))
      continue;
    if (const auto why = order.conflict(claim.mode, claim.max, order.claims().size())) {
      co_return tl::unexpected(*why);
    }
    if (at == line::none) co_return spi::granted{};
    co_return stores::blocked_by(stores::payload_in(order.claims()[at].value), false);
  }
}

// Without the readers it is unknown whether the claim at this place is refused or waits.
bool etcd_store::doubtful(const line& order, const spi::claim& claim, std::size_t place) {
  return order.lacks_claims() || order.conflict(claim.mode, claim.max, place);
}

// The server does not execute requests in the order in which they were sent: what we are about to
// remove, or have removed since that revision, is no reason to refuse a try. Each look takes a
// round trip, and a removal ends by its deadline.
bool etcd_store::leaves_here(entry& who, const standing& blocker, std::int64_t seen_at) {
  auto id = parse_id(blocker.id);
  if (!id) return false;
  const lock_guard lock(mutex_);
  if (const auto reused = reused_keys_.find(blocker.key); reused != reused_keys_.end())
    id = reused->second;
  if (seen_at < last_removal_) {
    if (++who.looks_again <= look_limit) return true;
    last_removal_ = 0;  // no look is as late: the cluster was restored to an earlier state
  }
  const auto found = entries_.find(*id);
  return found != entries_.end() && found->second->leaving();
}

// From its own key and the one before it: what blocks an exclusive claim, if they show it.
std::optional<standing> etcd_store::known_blocker(const entry& which, const look& seen) {
  if (seen.scope != look::of::last_two || seen.kvs.size() != 2 || !begins_with_own(which, seen))
    return std::nullopt;
  const line last(which.prefix, seen.kvs);
  if (last.claims().size() != 2 || last.claims()[0].mode == spi::mode::permit) return std::nullopt;
  return last.claims()[0];
}

bool etcd_store::begins_with_own(const entry& which, const look& seen) {
  return !seen.kvs.empty() && seen.kvs[0].key == which.key && seen.kvs[0].created == which.created;
}

task<result<spi::outcome>> etcd_store::judge(self_ptr self, entry_ptr which, look seen,
                                             net::patience until) {
  const spi::claim& claim = *which->claim;
  std::optional<standing> blocker = known_blocker(*which, seen);
  if (seen.kvs.size() == 1 && begins_with_own(*which, seen)) {  // nobody is before it
    const lock_guard lock(self->mutex_);
    which->wanted = which->wanted || seen.count > 1;
    co_return spi::granted{};  // settle() fills it in
  }
  if (!blocker) {
    if (seen.scope == look::of::last_two) {
      seen = co_await value_of(read_line(self, which, look::of::all, until));
    }
    const line order(which->prefix, seen.kvs);
    const std::size_t place = order.find(which->id, which->created);
    if (seen.scope == look::of::no_readers && doubtful(order, claim, place)) {
      look all = co_await value_of(read_line(self, which, look::of::all, until));
      co_return co_await judge(self, which, std::move(all), until);
    }
    if (place == line::none) co_return failure(errc::lost, "the claim's key was removed");
    bool held = false;
    {
      const lock_guard lock(self->mutex_);
      which->mode = order.claims()[place].mode;
      which->fenced = order.claims()[place].fenced;
      which->changed = order.claims()[place].changed;
      held = which->where == entry::phase::held;
    }
    if (!held) {
      if (const auto why = order.conflict(claim.mode, claim.max, place)) {
        const result<spi::departure> left = co_await depart(self, which, until);
        co_return tl::unexpected(left ? *why : left.error());
      }
    }
    const std::size_t before = order.blocker_of(place);
    if (before == line::none || held) {
      const bool wanted = order.wanted(place);
      const lock_guard lock(self->mutex_);
      which->wanted = wanted;
      co_return spi::granted{};
    }
    blocker = order.claims()[before];
  }
  if (!claim.queued) {
    if (self->leaves_here(*which, *blocker, seen.revision)) {
      look all = co_await value_of(read_line(self, which, look::of::all, until));
      co_return co_await judge(self, which, std::move(all), until);
    }
    co_await value_of(depart(self, which, until));
    co_return stores::blocked_by(stores::payload_in(blocker->value), false);
  }
  self->stand_behind(which, *blocker, seen.revision);
  co_return stores::blocked_by(stores::payload_in(blocker->value), true);
}

// Called with the mutex held. Adds it to the claims that wait here.
bool etcd_store::first_for_permits(const entry_ptr& which) {
  auto& line = permit_lines_[which->prefix];
  line.insert_or_assign(which->created, which);
  return line.begin()->second == which;
}

// Called with the mutex held, when it holds or is over. Returns the claim that
// must look now; null: none.
entry_ptr etcd_store::leave_permits(const entry_ptr& which) {
  const auto line = permit_lines_.find(which->prefix);
  if (!which->permit() || line == permit_lines_.end()) return nullptr;
  const bool was_first = line->second.begin()->second == which;
  std::erase_if(line->second, [&](const auto& each) { return each.second == which; });
  if (line->second.empty()) {
    permit_lines_.erase(line);
    return nullptr;
  }
  return was_first ? line->second.begin()->second : nullptr;
}

// Watches the blocker, from the revision at which it was seen.
void etcd_store::stand_behind(const entry_ptr& which, const standing& blocker, std::int64_t seen) {
  // Permits may be freed by any claim. A reader also waits for the end of a mode; for a claim that
  // began as a reader only the key of its mode shows that.
  const bool shared = which->claim->mode == spi::mode::shared;
  std::string what = blocker.key;
  if (which->permit()) {
    what = which->prefix;
  } else if (shared && blocker.kind == claim_kind::reader) {
    what = mode_key(which->prefix, blocker.kind, blocker.id);
  }
  {
    const lock_guard lock(mutex_);
    if (which->watch != nullptr && which->watched == what) return;
    if (which->where == entry::phase::over) return;
    if (which->permit() && !first_for_permits(which)) return;
    which->watched = what;
  }
  auto made = blockers_->add(what, shared ? watch_filter::none : watch_filter::no_put, seen,
                             [weak = weak_from_this(), claim = std::weak_ptr(which)] {
                               const auto self = weak.lock();
                               const auto alive = claim.lock();
                               if (self && alive && !self->closed_) self->look_again(alive);
                             });
  const lock_guard lock(mutex_);
  if (which->where != entry::phase::over) which->watch = std::move(made);
}

task<result<spi::outcome>> etcd_store::place(self_ptr self, entry_ptr which, net::patience until) {
  bool there = false;
  bool first = false;
  look::of scope = scope_of(which->claim->mode);
  {
    const lock_guard lock(self->mutex_);
    there = which->created != 0 && !which->uncertain;
    first = which->owner == 0;
    const bool waits = which->where != entry::phase::held;
    if (waits && which->claim->mode == spi::mode::exclusive) scope = look::of::last_two;
  }
  if (!there && first && !which->claim->queued) {
    result<spi::outcome> tried = co_await try_first(self, which, until);
    if (!tried || std::holds_alternative<spi::blocked>(*tried)) co_return tried;
  }
  // Not in one expression: GCC 12 gets an awaited operand of ?: wrong.
  look seen;
  if (there) {
    seen = co_await value_of(read_line(self, which, scope, until));
  } else {
    seen = co_await value_of(put_in_line(self, which, until));
  }
  co_return co_await judge(self, which, std::move(seen), until);
}

// A claim that may still be put by an unanswered request leaves a tombstone, on the lease on which
// that request would put it.
task<result<spi::departure>> etcd_store::depart(self_ptr self, entry_ptr which,
                                                net::patience until) {
  std::int64_t owner = 0;
  bool uncertain = false;
  bool moves = false;
  {
    const lock_guard lock(self->mutex_);
    owner = which->owner;
    uncertain = which->uncertain || which->unanswered;
    if (owner == 0 || (which->created == 0 && !uncertain)) co_return spi::departure::gone;
    which->late = which->late || uncertain || std::exchange(which->removing, true);
    moves = which->adopted || which->handing_over;
  }
  // For each transaction that writes, etcd copies everything that it has not committed yet, which
  // costs more than the deletion itself.
  if (!moves && !uncertain && which->kind != claim_kind::reader) {
    call removes{method::delete_range, delete_body(which->keys())};
    const reply answer =
        co_await value_of(ask_one(self->way_, removes, "delete", which->key, until));
    const deletion_answer done = co_await value_of(read_deletion(answer.body));
    co_return self->removed(*which, done.deleted, done.header.revision);
  }
  std::size_t parts = 1;
  txn_writer step;
  // Where the key may belong to another claim, that claim's key stays.
  if (which->adopted) {
    step.value(owner_key(which->key), owner_text(*which->claim));
  } else if (moves) {
    step.created({owner_key(which->key)}, txn_writer::relation::equal, 0);
  }
  step.then_delete(delete_body(which->keys()));
  if (which->kind == claim_kind::reader) {
    const std::string mode = mode_key(which->prefix, which->kind, which->id);
    step.then_delete(delete_body({mode}));
    ++parts;
  }
  if (uncertain) {
    ++parts;
    const std::string put = put_body(tombstone_of(*self->options_, which->claim->id), {}, owner);
    step.then_put(put).else_put(put);
  }
  const result<txn_answer> done = co_await ask_txn(self->way_, step, "delete", which->key, until);
  if (!done && done.error() == errc::lost) {
    which->life->ended(owner);
    co_return spi::departure::gone;
  }
  if (!done) co_return tl::unexpected(done.error());
  const bool expected = done->succeeded ? done->parts.size() == parts : moves;
  if (!expected) co_return failure(errc::unavailable, "etcd: an unexpected answer to a deletion");
  const std::int64_t deleted = done->succeeded ? done->parts.front().deleted : 0;
  co_return self->removed(*which, deleted, done->header.revision);
}

// `deleted`: how many keys of it there were.
spi::departure etcd_store::removed(entry& which, std::int64_t deleted, std::int64_t revision) {
  const lock_guard lock(mutex_);
  which.created = 0;
  which.uncertain = false;
  if (deleted == 0) return spi::departure::gone;
  last_removal_ = std::max(last_removal_, revision);
  spare(which);
  const bool held = which.where == entry::phase::held;
  return held ? spi::departure::was_holder : spi::departure::was_waiting;
}

// Called with the mutex held.
etcd_store::follow_up etcd_store::settled(const entry_ptr& which) {
  follow_up rest;
  if (which->where == entry::phase::held) which->watch.reset();
  if (which->where == entry::phase::over) drop_watches(which, rest.unneeded);
  if (which->where != entry::phase::waiting) rest.next = leave_permits(which);
  return rest;
}

void etcd_store::carry_out(const follow_up& rest) {
  for (const auto each : rest.unneeded) watches_->remove(each);
  if (rest.next) look_again(rest.next);
}

}  // namespace holdfast::etcd
