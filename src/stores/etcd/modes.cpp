// From reader to writer and back.
#include "stores/etcd/etcd_store.hpp"

namespace holdfast::etcd {

// The claim's own key keeps its place in the queue; a second key says what it has become, below
// write/, where Go's readers look for writers.
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
    const range_answer seen = co_await value_of(read_range(looked[0]->body));
    const line order(which->prefix, seen.kvs);
    const std::size_t place = order.find(which->id, which->created);
    if (place == line::none) co_return failure(errc::lost, "the claim's key was removed");
    const standing& mine = order.claims()[place];
    if (mine.lease == owner) which->life->accept(proof);
    if (mine.mode == to) {  // also where an unanswered earlier request did it
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
    // Nobody came since the look: a newer reader would hold by now.
    if (to == spi::mode::exclusive) {
      step.modified(keys_with(which->prefix), txn_writer::relation::less, seen.header.revision + 1);
    }
    step.then_put(put_body(mode, value, owner));
    const result<txn_answer> done = co_await ask_txn(self->way_, step, "put", mode, until);
    if (!done && done.error() == errc::lost) which->life->ended(owner);
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
