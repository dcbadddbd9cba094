// From reader to writer and back, as Curator does its downgrade: the new node has the old one's
// number and takes its place in one step.
#include "stores/zookeeper/zookeeper_store.hpp"

#include <utility>

namespace holdfast::zookeeper {

// Replaces our node by one of another kind at the same place. The old node's data is changed before
// it is removed: whoever watches it must look at the line, not take its end for the end of a hold.
task<result<void>> zookeeper_store::rename(self_ptr self, entry_ptr which, claim_kind to,
                                           net::patience until) {
  const auto known = parse_node(which->node);
  if (!known) co_return failure(errc::lost, "not held any more");
  const std::string name =
      prefix_of(which->naming, which->claim->id, to) + sequence_text(known->sequence);
  const std::string payload = which->claim->payload;
  std::vector<request> parts;
  parts.push_back(make_set_data(which->node_path(), payload));
  parts.push_back(
      make_create(which->parent + "/" + name, payload, node_kind::ephemeral, self->options_->acl));
  parts.push_back(make_remove(which->node_path()));
  std::int64_t owner = 0;
  {
    const lock_guard lock(self->mutex_);
    which->uncertain = true;  // which of the two it is
    which->expects_end = true;
    owner = which->owner;
  }
  question step{make_multi(parts), nullptr, {}};
  const result<reply> answer = co_await ask_one(which->life, std::move(step), until, owner);
  if (!answer) co_return tl::unexpected(answer.error());
  const auto outcome = read_multi(answer->body);
  const bool done = answer->code == code::ok && outcome && outcome->failed == code::ok &&
                    outcome->made.size() == 1;
  {
    const lock_guard lock(self->mutex_);
    which->uncertain = false;
    which->expects_end = false;
    which->own_watched = false;  // tick() watches the new one
    which->granted_at = self->now();
    if (done) {
      which->node = name;
      which->kind = to;
      which->created = outcome->zxid;
    }
  }
  if (done) co_return result<void>{};
  const code failed = answer->code != code::ok ? answer->code
                      : outcome                ? outcome->failed
                                               : code::connection_loss;
  if (failed == code::no_node) co_return failure(errc::lost, "the claim's node was removed");
  co_return tl::unexpected(refusal("create", which->path + "/" + name, failed));
}

task<result<spi::granted>> zookeeper_store::change_mode(self_ptr self, entry_ptr which,
                                                        spi::mode to, net::patience until) {
  if (which->uncertain) {  // an earlier change was not answered
    const result<void> known = co_await recover(self, which, until);
    if (!known) co_return tl::unexpected(known.error());
    const lock_guard lock(self->mutex_);
    which->expects_end = false;
    which->own_watched = false;
    if (const auto node = parse_node(which->node)) which->kind = node->kind;
  }
  bool held = false;
  {
    const lock_guard lock(self->mutex_);
    held = which->where == entry::phase::held && !which->node.empty();
  }
  if (!held) co_return failure(errc::lost, "not held any more");
  const bool reads = which->kind == claim_kind::reader;
  const bool wants_reader = to == spi::mode::shared;
  if (reads != wants_reader && wants_reader) {
    const result<void> done = co_await rename(self, which, claim_kind::reader, until);
    if (!done) co_return tl::unexpected(done.error());
  } else if (reads != wants_reader) {
    // Readers that hold are readers with no writer before them; ours would be such a writer to all
    // that come from now on. Those who came just before are seen afterwards.
    for (const bool changed : {false, true}) {
      const result<children> around =
          co_await list_children(which->life, which->path, freshness::of_now, until);
      if (!around) co_return tl::unexpected(around.error());
      const line order(*around);
      std::size_t others = 0;
      for (const claim_node& each : order.nodes()) {
        if (each.name == which->node) continue;
        if (each.excludes()) break;
        ++others;
      }
      if (others > 0 && changed) {
        const result<void> back = co_await rename(self, which, claim_kind::reader, until);
        if (!back) co_return tl::unexpected(back.error());
      }
      if (others > 0) co_return failure(errc::would_deadlock, "other readers hold it");
      if (changed) break;
      const result<void> done = co_await rename(self, which, claim_kind::writer, until);
      if (!done) co_return tl::unexpected(done.error());
    }
  }
  const lock_guard lock(self->mutex_);
  co_return self->grant_of(*which, self->now());
}

}  // namespace holdfast::zookeeper
