// Joining the queue and leaving it, and what became of a node whose creation was not answered.
#include "stores/zookeeper/zookeeper_store.hpp"

#include <utility>

namespace holdfast::zookeeper {

task<result<spi::outcome>> zookeeper_store::place(self_ptr self, entry_ptr which,
                                                  net::patience until) {
  {
    const lock_guard lock(self->mutex_);
    which->expects_end = false;
  }
  // Not in one expression: GCC 12 gets an awaited operand of ?: wrong.
  result<spi::outcome> placed = failure(errc::unavailable);
  if (which->permit()) {
    placed = co_await place_permit(self, which, until);
  } else {
    placed = co_await place_lock(self, which, until);
  }
  if (!placed) {
    const lock_guard lock(self->mutex_);
    which->armed = false;
  }
  co_return placed;
}

// Finds out what became of a node whose creation was not answered. After a barrier: the server that
// we are connected to now may be behind the one that created it.
task<result<void>> zookeeper_store::recover(self_ptr self, entry_ptr which, net::patience until) {
  const std::string leases = which->path + "/" + std::string(leases_folder);
  std::vector<question> batch;
  batch.push_back({make_barrier()});
  batch.push_back({make_get_children(which->parent, false)});
  if (which->permit()) batch.push_back({make_get_children(leases, false)});
  const replies answers = co_await asking(which->life, std::move(batch), until);
  std::vector<std::string> found;
  for (std::size_t i = 1; i < answers.size(); ++i) {
    const std::string& folder = i == 1 ? which->parent : leases;
    const children names = co_await value_of(children_in(answers[i], folder));
    const std::string mine = protection_of(which->naming, which->claim->id);
    for (const std::string& each : names) {
      if (each.starts_with(mine)) found.push_back(folder + "/" + each);
    }
  }
  std::vector<std::string> ours;
  std::int64_t owner = 0;
  std::int64_t created = 0;
  for (const std::string& each : found) {
    question look{make_exists(each, false)};
    const reply seen = co_await value_of(ask_one(which->life, std::move(look), until));
    const auto known = read_stat(seen.body);
    if (seen.code != code::ok || !known) continue;
    if (known->owner == seen.session) {
      ours.push_back(each);
      owner = seen.session;
      created = known->created;
      continue;
    }
    // It belongs to an ended session: it will go by itself, but must not block us until then.
    question remove{make_remove(each)};
    co_await value_of(ask_one(which->life, std::move(remove), until));
  }
  const lock_guard lock(self->mutex_);
  which->uncertain = false;
  which->expects_end = false;
  which->own_watched = false;
  for (const std::string& each : ours) {
    if (each.starts_with(leases + "/")) {
      which->leases.push_back(each);
    } else {
      which->node = each.substr(which->parent.size() + 1);
      which->kind = parse_node(which->node)->kind;
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
  if (uncertain) co_await value_of(recover(self, which, until));
  std::vector<question> batch;
  std::int64_t owner = 0;
  bool held = false;
  {
    const lock_guard lock(self->mutex_);
    which->expects_end = true;
    owner = which->owner;
    held = which->where == entry::phase::held;
    if (!which->node.empty()) batch.push_back({make_remove(which->node_path())});
    for (const std::string& each : which->leases) batch.push_back({make_remove(each)});
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

// --- from reader to writer and back ---------------------------------------------------------------

// Like Curator's downgrade: the new node has the old one's number and replaces it in one step.

// Replaces our node by one of another kind at the same place. The old node's data is
// changed before it is removed: its watchers must look at the queue, and not mistake its
// end for the end of a hold.
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
    which->upgrading = which->upgrading || to == claim_kind::writer;
    which->expects_end = true;
    which->own_watched = false;  // tick() watches the one that it is
    owner = which->owner;
  }
  const multi_outcome outcome =
      co_await value_of(ask_multi(which->life, std::move(parts), until, owner));
  const bool done = outcome.failed == code::ok && outcome.made.size() == 1;
  {
    const lock_guard lock(self->mutex_);
    which->uncertain = false;
    which->expects_end = false;
    which->granted_at = self->now();
    if (done) {
      which->node = name;
      which->kind = to;
      which->created = outcome.zxid;
    }
  }
  if (done) co_return result<void>{};
  if (outcome.failed == code::no_node) {
    co_return failure(errc::lost, "the claim's node was removed");
  }
  co_return tl::unexpected(refusal("create", which->path + "/" + name, outcome.failed));
}

task<result<spi::granted>> zookeeper_store::change_mode(self_ptr self, entry_ptr which,
                                                        spi::mode to, net::patience until) {
  if (which->uncertain) co_await value_of(recover(self, which, until));
  bool held = false;
  {
    const lock_guard lock(self->mutex_);
    held = which->where == entry::phase::held && !which->node.empty();
  }
  if (!held) co_return failure(errc::lost, "not held any more");
  const bool reads = which->kind == claim_kind::reader;
  const bool wants_reader = to == spi::mode::shared;
  if (wants_reader && !reads) {
    co_await value_of(rename(self, which, claim_kind::reader, until));
  }
  // Before it is renamed, and afterwards: then it excludes all that come, and those that came in
  // between are seen.
  while (!wants_reader && (which->kind == claim_kind::reader || which->upgrading)) {
    const children around =
        co_await value_of(list_children(which->life, which->path, freshness::of_now, until));
    const line order(around);
    const std::size_t place = order.find(which->node);
    if (place == line::none) co_return failure(errc::lost, "the claim's node was removed");
    const bool renamed = which->kind == claim_kind::writer;
    if (!order.alone(place)) {
      if (renamed) co_await value_of(rename(self, which, claim_kind::reader, until));
      co_return failure(errc::would_deadlock, "other readers hold it");
    }
    if (!renamed) {
      co_await value_of(rename(self, which, claim_kind::writer, until));
      continue;
    }
    const lock_guard lock(self->mutex_);
    which->upgrading = false;
  }
  const lock_guard lock(self->mutex_);
  co_return self->grant_of(*which, self->now());
}

}  // namespace holdfast::zookeeper
