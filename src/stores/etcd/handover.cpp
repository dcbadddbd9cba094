// Claims that move between processes. The key stays, and with it its place in the queue and its
// fence: it is put again, in one transaction with the key that says whose it is, on the lease of
// the new owner. A detached claim has a lease of its own, which ends by itself.
//
// What must hold:
//  1. The giver and the taker both compare with the owner that they saw: of two, one succeeds, and
//     a late request changes nothing.
//  2. A claim whose request to take a key may still arrive leaves a tombstone (depart()),
//     which that request respects: the lease on which it would put the key lives as long as
//     other claims of this client.
//  3. What may belong to another claim is removed only if its owner is the claim that leaves.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

const error not_there{errc::not_held, "not held any more"};

// The data of a key that becomes another claim's: what was granted does not change.
std::string data_for(const spi::claim& to, const std::optional<stores::permits_data>& terms) {
  return with_owner(terms ? stores::data_of(to.payload, *terms) : to.payload, to.id);
}

std::optional<stores::permits_data> terms_of(const standing& what) {
  return what.kind == claim_kind::permit ? std::optional(what.permits) : std::nullopt;
}

// It holds, is not revoked, and its owner has not changed since it was seen.
txn_writer unchanged(const standing& what) {
  txn_writer step;
  step.created({what.key}, txn_writer::relation::equal, what.created)
      .modified({owner_key(what.key)}, txn_writer::relation::equal, what.handed_on)
      .created({what.key + "/revoked"}, txn_writer::relation::equal, 0);
  return step;
}

void put_for(txn_writer& step, const std::string& key, const spi::claim& to,
             const std::optional<stores::permits_data>& terms, std::int64_t lease) {
  step.then_put(put_body(key, data_for(to, terms), lease))
      .then_put(put_body(owner_key(key), owner_text(to), lease));
}

spi::granted granted_to(const spi::claim& to, std::int64_t fenced, time_point at) {
  spi::granted grant;
  grant.fence = stores::fence_of(fenced);
  grant.ttl = to.ttl;
  grant.at = stores::server_time_of(at);
  return grant;
}

}  // namespace

void etcd_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                          std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  const claim_kind kind = kind_of(*to);
  if (kind == claim_kind::reader || kind == claim_kind::writer) {
    return done(failure(errc::unsupported, "a lease of a shared lock cannot be handed on in etcd"));
  }
  if (from == to->id) {
    stores::answer(renew_detached(shared_from_this(), std::move(to), context), std::move(done));
    return;
  }
  entry_ptr which = find(to->detached ? from : to->id);
  if (which == nullptr && to->detached) return done(tl::unexpected(not_there));
  if (which == nullptr) {
    which = new_entry(to);
    which->adopted = true;
    add(which);
  }
  {
    const lock_guard lock(mutex_);
    if (wakeup) which->wakeup = std::move(wakeup);
    which->until = context;
    which->unanswered = which->unanswered || context.unanswered;
    if (which->where == entry::phase::placing) {
      which->end_at = std::max(context.deadline, now() + stores::waiter_lease);
    }
    which->handovers.push_back({from, std::move(to), std::move(done)});
  }
  kick(which);
}

task<result<spi::granted>> etcd_store::hand_on(self_ptr self, entry_ptr which,
                                               const entry::handover& what, net::patience until) {
  if (what.from == which->claim->id) return hand_over(self, which, what.to, until);
  return take_over(self, which, what.from, until);
}

// --- giving away ---------------------------------------------------------------------------------

// Can be repeated after a lost answer: a repetition sees that the key belongs to that claim.
task<result<spi::granted>> etcd_store::hand_over(self_ptr self, entry_ptr which, spi::claim_ptr to,
                                                 net::patience until) {
  std::int64_t owner = 0;
  std::int64_t created = 0;
  bool uncertain = false;
  {
    const lock_guard lock(self->mutex_);
    if (which->where != entry::phase::held) co_return tl::unexpected(not_there);
    owner = which->owner;
    created = which->created;
    uncertain = which->uncertain || which->unanswered;
    which->handing_over = true;
    which->late = true;
  }
  const std::int64_t lease = co_await value_of(new_lease(self, lease_time(*to), until));
  const spi::claim& own = *which->claim;
  const auto terms =
      which->permit() ? std::optional(stores::permits_data{own.permits, own.max}) : std::nullopt;
  txn_writer step;
  step.created({which->key}, txn_writer::relation::equal, created)
      .created({which->key + "/revoked"}, txn_writer::relation::equal, 0);
  if (which->adopted) {
    step.value(owner_key(which->key), owner_text(own));
  } else {
    step.created({owner_key(which->key)}, txn_writer::relation::equal, 0);
  }
  put_for(step, which->key, *to, terms, lease);
  if (uncertain) step.then_put(put_body(tombstone_of(*self->options_, own.id), {}, owner));
  step.else_range(range_body(which->keys()));
  const result<txn_answer> done = co_await ask_txn(self->way_, step, "put", which->key, until);
  if (!done && done.error() == errc::lost) {
    which->life->ended(owner);
    co_return tl::unexpected(not_there);
  }
  if (!done) co_return tl::unexpected(done.error());
  if (!done->succeeded) {
    end_lease(self, lease);
    if (done->parts.size() != 1) {
      co_return failure(errc::unavailable, "etcd: an unexpected answer to a transaction");
    }
    const line seen(which->prefix, done->parts.front().range.kvs);
    const std::size_t place = seen.find(which->id, created);
    const bool before = place != line::none && seen.claims()[place].owner == owner_text(*to);
    if (!before) co_return tl::unexpected(not_there);
  }
  co_return granted_to(*to, which->fenced, self->now());
}

// --- taking --------------------------------------------------------------------------------------

// Also where an unanswered earlier request took it, and to prove a hold again.
task<result<spi::granted>> etcd_store::take_over(self_ptr self, entry_ptr which, spi::claim_id from,
                                                 net::patience until) {
  spi::claim given;
  given.id = from;
  given.detached = true;
  const std::string giver = owner_text(given);
  const std::string taker = owner_text(*which->claim);
  for (int round = 0; round < look_limit; ++round) {
    const std::int64_t lease = co_await value_of(lease_keeper::ready(which->life, until));
    {
      const lock_guard lock(self->mutex_);
      if (which->created == 0) which->owner = lease;
    }
    const look seen = co_await value_of(read_line(self, which, look::of::all, until));
    const line order(which->prefix, seen.kvs);
    if (const std::size_t mine = order.find_owned(taker); mine != line::none) {
      const standing& what = order.claims()[mine];
      co_return self->taken(which, what, what.lease);
    }
    const std::size_t place = order.find_owned(giver);
    if (place == line::none || order.claims()[place].revoked) {
      const lock_guard lock(self->mutex_);
      which->uncertain = false;  // earlier requests cannot succeed any more
      co_return tl::unexpected(not_there);
    }
    const standing& what = order.claims()[place];
    const bool done = co_await value_of(take_key(self, which, what, lease, until));
    if (!done) continue;
    end_lease(self, what.lease);
    co_return self->taken(which, what, lease);
  }
  co_return failure(errc::unavailable, "etcd: the line keeps changing");
}

// False: changed since it was seen.
task<result<bool>> etcd_store::take_key(self_ptr self, entry_ptr which, standing what,
                                        std::int64_t lease, net::patience until) {
  const spi::claim& claim = *which->claim;
  const std::string tombstone = tombstone_of(*self->options_, claim.id);
  bool before = false;
  {
    const lock_guard lock(self->mutex_);
    which->key = what.key;
    which->id = what.id;
    before = std::exchange(which->uncertain, true);
  }
  txn_writer step = unchanged(what);
  step.created({tombstone}, txn_writer::relation::equal, 0);
  put_for(step, what.key, claim, terms_of(what), lease);
  step.else_range(range_body({tombstone}));
  std::vector<call> calls;
  calls.push_back(std::move(step).made());
  lease_note proof;
  const replies answers = co_await lease_keeper::ask(which->life, lease, std::move(calls),
                                                     lease_keeper::renews::if_stale, until, proof);
  const result<txn_answer> done = txn_in(answers.front(), "put", what.key);
  if (!done && done.error() == errc::lost) {
    self->lease_is_gone(*which, lease);
    co_return false;
  }
  const lock_guard lock(self->mutex_);
  which->uncertain = before || !is_definite(answers.front(), done);
  if (!done) co_return tl::unexpected(done.error());
  which->uncertain = before && !done->succeeded;
  if (done->succeeded) {
    which->life->accept(proof);
    co_return true;
  }
  const bool left = !done->parts.empty() && !done->parts.front().range.kvs.empty();
  if (left) co_return tl::unexpected(not_there);
  co_return false;
}

// It holds from here on.
spi::granted etcd_store::taken(const entry_ptr& which, const standing& what, std::int64_t owner) {
  const lock_guard lock(mutex_);
  const time_point at = now();
  const spi::claim& claim = *which->claim;
  which->key = what.key;
  which->id = what.id;
  which->owner = owner;
  which->created = what.created;
  which->fenced = what.fenced;
  which->uncertain = false;
  reused_keys_.insert_or_assign(which->key, claim.id);
  if (std::exchange(which->where, entry::phase::held) != entry::phase::held) which->granted_at = at;
  const spi::granted grant = grant_of(*which, at);
  which->end_at = which->end_of_hold(at, which->granted_at, grant.ttl);
  return grant;
}

// --- detached claims -----------------------------------------------------------------------------

void etcd_store::leave_unknown(spi::claim_ptr claim, const spi::op_context& context,
                               spi::completion<spi::departure> done) {
  if (!claim->detached) return done(spi::departure::gone);
  stores::answer(release_detached(shared_from_this(), std::move(claim), context), std::move(done));
}

// Nothing: it is over.
task<result<std::optional<standing>>> etcd_store::find_detached(self_ptr self, spi::claim_ptr claim,
                                                                net::patience until) {
  const std::string prefix = prefix_of(*self->options_, claim->resource);
  const std::string none;
  const line order = co_await value_of(look_at(self, prefix, look::of::all, none, until));
  const std::size_t place = order.find_owned(owner_text(*claim));
  std::optional<standing> found;
  if (place != line::none) found = order.claims()[place];
  co_return found;
}

task<result<spi::granted>> etcd_store::renew_detached(self_ptr self, spi::claim_ptr claim,
                                                      net::patience until) {
  for (int round = 0; round < look_limit; ++round) {
    const auto found = co_await value_of(find_detached(self, claim, until));
    if (!found || found->revoked) co_return tl::unexpected(not_there);
    const std::int64_t lease = co_await value_of(new_lease(self, lease_time(*claim), until));
    txn_writer step = unchanged(*found);
    put_for(step, found->key, *claim, terms_of(*found), lease);
    const result<txn_answer> done = co_await ask_txn(self->way_, step, "put", found->key, until);
    if (!done && done.error() == errc::lost) continue;  // the new lease ended first
    if (!done) co_return tl::unexpected(done.error());
    end_lease(self, done->succeeded ? found->lease : lease);
    if (done->succeeded) co_return granted_to(*claim, found->fenced, self->now());
  }
  co_return failure(errc::unavailable, "etcd: the line keeps changing");
}

task<result<spi::departure>> etcd_store::release_detached(self_ptr self, spi::claim_ptr claim,
                                                          net::patience until) {
  for (int round = 0; round < look_limit; ++round) {
    const auto found = co_await value_of(find_detached(self, claim, until));
    if (!found) co_return spi::departure::gone;
    txn_writer step;
    step.created({found->key}, txn_writer::relation::equal, found->created)
        .value(owner_key(found->key), owner_text(*claim))
        .then_delete(delete_body(keys_with(found->key)));
    const txn_answer done =
        co_await value_of(ask_txn(self->way_, step, "delete", found->key, until));
    if (!done.succeeded) continue;
    {
      const lock_guard lock(self->mutex_);
      self->last_removal_ = std::max(self->last_removal_, done.header.revision);
    }
    end_lease(self, found->lease);
    co_return spi::departure::was_holder;
  }
  co_return failure(errc::unavailable, "etcd: the line keeps changing");
}

// A lease that nothing keeps alive.
task<result<std::int64_t>> etcd_store::new_lease(self_ptr self, duration time,
                                                 net::patience until) {
  call asks = lease_grant_call(time / std::chrono::seconds(1));
  const reply answer = co_await value_of(ask_one(self->way_, asks, "grant", "a lease", until));
  const lease_answer lease = co_await value_of(read_lease(answer.body));
  if (lease.id == 0) co_return failure(errc::unavailable, "etcd: no lease: " + lease.error);
  co_return lease.id;
}

// Nothing is attached to it any more. It would end by itself.
flow etcd_store::end_lease(self_ptr self, std::int64_t lease) {
  const time_point deadline = self->now() + stores::recheck_after;
  call asks = lease_call(method::lease_revoke, lease);
  static_cast<void>(co_await ask_one(self->way_, asks, "revoke", "a lease", deadline));
}

}  // namespace holdfast::etcd
