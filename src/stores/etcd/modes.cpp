// From reader to writer and back. The claim's own key keeps its place in the line; what it has become
// is said by a second key, below write/, where Go's readers look for writers.
#include "stores/etcd/etcd_store.hpp"

#include <utility>

namespace holdfast::etcd {

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
