#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

// Of a claim that may still be put by a request that was never answered a tombstone stays, on the lease
// on which that request would put it.
task<result<spi::departure>> etcd_store::depart(self_ptr self, entry_ptr which,
                                                net::patience until) {
  std::int64_t owner = 0;
  bool held = false;
  bool uncertain = false;
  bool moves = false;
  {
    const lock_guard lock(self->mutex_);
    owner = which->owner;
    held = which->where == entry::phase::held;
    uncertain = which->uncertain || which->unanswered;
    if (owner == 0 || (which->created == 0 && !uncertain)) co_return spi::departure::gone;
    which->late = which->late || uncertain || std::exchange(which->removing, true);
    moves = which->adopted || which->handing_over;
  }
  std::size_t parts = 1;
  txn_writer step;
  // Where the key may be another claim's, that one's stays.
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
  std::vector<call> calls;
  calls.push_back(std::move(step).made());
  const replies answers = co_await asking(self->way_, std::move(calls), until);
  const result<reply>& answer = answers.front();
  if (!answer) co_return tl::unexpected(answer.error());
  if (lease_is_gone(answer->status)) {
    which->life->ended(owner);
    co_return spi::departure::gone;
  }
  if (!answer->ok()) co_return tl::unexpected(refusal("delete", which->key, answer->status));
  const auto done = read_txn(answer->body);
  if (!done) co_return tl::unexpected(done.error());
  const bool expected = done->succeeded ? done->parts.size() == parts : moves;
  if (!expected) co_return failure(errc::unavailable, "etcd: an unexpected answer to a deletion");
  const bool removed = done->succeeded && done->parts.front().deleted > 0;
  const lock_guard lock(self->mutex_);
  if (removed) self->last_removal_ = std::max(self->last_removal_, done->header.revision);
  which->created = 0;
  which->uncertain = false;
  if (!removed) co_return spi::departure::gone;
  self->spare(*which);
  co_return held ? spi::departure::was_holder : spi::departure::was_waiting;
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

// From reader to writer and back. The claim's own key keeps its place in the line; what it has become
// is said by a second key, below write/, where Go's readers look for writers.
task<result<spi::granted>> etcd_store::change_mode(self_ptr self, entry_ptr which, spi::mode to,
                                                   net::patience until) {
  std::int64_t owner = 0;
  {
    const lock_guard lock(self->mutex_);
    owner = which->owner;
    if (which->where != entry::phase::held) co_return failure(errc::lost, "not held any more");
  }
  const std::string mode = mode_key(which->prefix, which->kind, which->id);
  const std::string value = to == spi::mode::shared ? "shared" : "exclusive";
  for (int round = 0; round < look_limit; ++round) {
    std::vector<call> reads;
    reads.push_back(range_call(keys_with(which->prefix)));
    lease_note proof;
    const replies looked = co_await lease_keeper::ask(which->life, owner, std::move(reads),
                                                      lease_keeper::renews::if_stale, until, proof);
    if (!looked[0]) co_return tl::unexpected(looked[0].error());
    if (!looked[0]->ok()) {
      co_return tl::unexpected(refusal("read", which->prefix, looked[0]->status));
    }
    const auto seen = read_range(looked[0]->body);
    if (!seen) co_return tl::unexpected(seen.error());
    const line order(which->prefix, seen->kvs);
    const std::size_t place = order.find(which->id, which->created);
    if (place == line::none) co_return failure(errc::lost, "the claim's key was removed");
    const standing& mine = order.claims()[place];
    if (mine.lease == owner) which->life->accept(proof);
    if (mine.mode == to) {  // also where an earlier request did it and was not answered
      const lock_guard lock(self->mutex_);
      which->mode = to;
      which->changed = mine.changed;
      which->fenced = mine.fenced;
      co_return self->grant_of(*which, self->now());
    }
    if (to == spi::mode::exclusive) {
      for (std::size_t i = 0; i < order.claims().size(); ++i) {
        if (i == place || !order.holds(i)) continue;
        co_return failure(errc::would_deadlock, "other readers hold it");
      }
    }
    txn_writer step;
    step.created({which->key}, txn_writer::relation::equal, which->created);
    // Nobody came since the look: a reader that did holds by now.
    if (to == spi::mode::exclusive) {
      step.modified(keys_with(which->prefix), txn_writer::relation::less,
                    seen->header.revision + 1);
    }
    step.then_put(put_body(mode, value, owner));
    std::vector<call> calls;
    calls.push_back(std::move(step).made());
    const replies answers = co_await asking(self->way_, std::move(calls), until);
    if (!answers[0]) co_return tl::unexpected(answers[0].error());
    if (lease_is_gone(answers[0]->status)) {
      which->life->ended(owner);
      co_return failure(errc::lost, "the etcd lease has ended");
    }
    if (!answers[0]->ok()) {
      co_return tl::unexpected(refusal("put", mode, answers[0]->status));
    }
    const auto done = read_txn(answers[0]->body);
    if (!done) co_return tl::unexpected(done.error());
    if (!done->succeeded) continue;
    const lock_guard lock(self->mutex_);
    which->mode = to;
    which->changed = true;
    which->fenced = done->header.revision;
    co_return self->grant_of(*which, self->now());
  }
  co_return failure(errc::unavailable, "etcd: the line keeps changing");
}

}  // namespace holdfast::etcd
