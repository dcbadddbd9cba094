// A place in the queue of a lock: creating it, looking at it, and watching the one before it.
#include "stores/payload.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <utility>

namespace holdfast::zookeeper {

namespace {

result<line_ptr> line_in(const result<std::vector<std::string>>& names) {
  if (!names) return tl::unexpected(names.error());
  return std::make_shared<const line>(*names);
}

}  // namespace

task<result<zookeeper_store::children>> zookeeper_store::list_children(
    std::shared_ptr<session> whom, std::string path, freshness how, net::patience until) {
  std::vector<question> batch;
  if (how == freshness::of_now) batch.push_back({make_barrier()});
  batch.push_back({make_get_children(path, false)});
  const replies answers = co_await asking(std::move(whom), std::move(batch), until);
  if (!answers.front()) co_return tl::unexpected(answers.front().error());
  co_return children_in(answers.back(), path);
}

// For people: who blocks the claim. Empty if unknown.
task<std::string> zookeeper_store::payload_at(std::shared_ptr<session> whom, std::string path,
                                              net::patience until) {
  question look{make_get_data(path, false)};
  const result<reply> answer = co_await ask_one(std::move(whom), std::move(look), until);
  if (!answer || answer->code != code::ok) co_return std::string();
  const auto read = read_data(answer->body);
  co_return read ? stores::payload_in(read->data) : std::string();
}

// The queue of the claim's folder, from a list that was sent after this was called.
task<result<line_ptr>> zookeeper_store::list_line(self_ptr self, entry_ptr which,
                                                  net::patience until) {
  const listings::folder folder{which->life, which->parent};
  auto others = co_await listings::turn(self->listings_, folder, until.deadline);
  if (others) co_return *std::move(others);
  self->listings_.sending(folder);
  listings::answer seen =
      line_in(co_await list_children(which->life, which->parent, freshness::any, until));
  self->listings_.finished(folder, seen);
  co_return seen;
}

// Creates the node and lists these folders in one batch. Such a list always contains it, as the
// server executes a session's requests in order. False: its parent is missing.
task<result<bool>> zookeeper_store::make_node(self_ptr self, entry_ptr which, std::string data,
                                              std::vector<std::string> folders, replies& lists,
                                              net::patience until) {
  bool doubted = false;
  {
    const lock_guard lock(self->mutex_);
    const auto found = self->in_line_.find(which->parent);
    const result<void> fits = self->check_length(found == self->in_line_.end() ? 0 : found->second);
    if (!fits) co_return tl::unexpected(fits.error());
    doubted = std::exchange(which->uncertain, true);
  }
  const std::string node =
      which->parent + "/" + prefix_of(which->naming, which->claim->id, which->kind);
  std::vector<question> batch;
  batch.push_back({make_create(node, data, node_kind::ephemeral_sequential, self->options_->acl)});
  for (const std::string& each : folders) batch.push_back({make_get_children(each, false)});
  lists = co_await asking(which->life, std::move(batch), until);
  const result<reply> made = std::move(lists.front());
  lists.erase(lists.begin());
  const lock_guard lock(self->mutex_);
  if (!made && made.error() == errc::unavailable) {
    which->uncertain = doubted || !made.error().unsent;
    co_return tl::unexpected(made.error());
  }
  if (made && made->code == code::ok) {
    const auto node_made = read_created(made->body);
    if (!node_made || node_made->stat.owner != made->session) {
      co_return failure(errc::unavailable, "zookeeper: a node of another session's");
    }
    which->uncertain = false;
    which->node = node_made->path.substr(which->parent.size() + 1);
    which->owner = made->session;
    which->created = node_made->stat.created;
    co_return true;
  }
  which->uncertain = false;  // refused: nothing was created
  if (!made) co_return tl::unexpected(made.error());
  if (made->code == code::no_node) co_return false;
  co_return tl::unexpected(refusal("create", node, made->code));
}

// Creates the node and lists its folder; if such a list is on its way already, the next
// one is shared with others.
task<result<line_ptr>> zookeeper_store::join(self_ptr self, entry_ptr which, net::patience until) {
  const listings::folder folder{which->life, which->parent};
  for (int round = 0; round < look_limit; ++round) {
    std::vector<std::string> folders;
    const bool lists = self->listings_.start(folder);
    if (lists) folders.push_back(which->parent);
    replies listed;
    const result<bool> made =
        co_await make_node(self, which, which->claim->payload, std::move(folders), listed, until);
    listings::answer seen = failure(errc::unavailable);
    if (lists && !listed.empty()) seen = line_in(children_in(listed.front(), which->parent));
    if (lists) self->listings_.finished(folder, seen);
    if (!made) co_return tl::unexpected(made.error());
    if (*made && seen) co_return seen;
    if (*made) co_return co_await list_line(self, which, until);
    co_await value_of(make_containers(which->life, which->parent, self->options_->acl, until));
  }
  co_return failure(errc::unavailable, "zookeeper: " + which->parent + " is removed all the time");
}

// For a claim that comes after so many others: the list that each reads would grow until the
// session's pings come too late.
result<void> zookeeper_store::check_length(std::size_t before) const {
  if (before < options_->line_limit) return {};
  return failure(errc::overloaded, "zookeeper: " + std::to_string(options_->line_limit) +
                                       " hold the name or wait for it, which is the limit");
}

// The name may be in use as something else; empty or old remains of that do not count.
task<result<void>> zookeeper_store::check_kind(self_ptr self, entry_ptr which, line_ptr around,
                                               net::patience until) {
  const line& order = *around;
  if (which->permit()) {
    if (!order.nodes().empty()) {
      co_return failure(errc::name_conflict, "the name is in use as a lock");
    }
  } else if (order.has_semaphore()) {
    const auto lists =
        co_await value_of(look_around(which->life, which->path, freshness::any, until));
    if (!lists[1].empty() || !lists[2].empty()) {
      co_return failure(errc::name_conflict, "the name is in use as a semaphore");
    }
  }
  if (order.has_latch()) {
    const std::string none;
    const latch_count known = co_await value_of(read_count(self, which->path, none, until));
    if (known.value) co_return failure(errc::name_conflict, "the name is in use as a latch");
  }
  co_return result<void>{};
}

// Watches the node before ours, and our own. busy: it is gone already, look
// again. Else its payload.
task<result<std::string>> zookeeper_store::stand_behind(self_ptr self, entry_ptr which,
                                                        std::string blocker, bool shortcut,
                                                        net::patience until) {
  std::vector<question> batch;
  std::int64_t owner = 0;
  const std::string own = which->node_path();
  const std::string other = which->parent + "/" + blocker;
  {
    const lock_guard lock(self->mutex_);
    ++which->look;
    which->shortcut = shortcut;
    which->armed = true;
    which->looked_at = self->now();
    owner = which->owner;
    // Our own first: then the end of the other one, with no event of ours,
    // shows that ours still exists.
    if (!std::exchange(which->own_watched, true)) {
      which->own_event = false;
      batch.push_back({make_get_data(own, true), self->own_watcher(which), own});
    }
    self->watch_blocker(which, opcode::get_data, other);
    batch.push_back({make_get_data(other, true), which->watch, other});
  }
  const bool both = batch.size() == 2;
  const replies answers = co_await asking(which->life, std::move(batch), until, owner);
  const result<reply>& theirs = answers.back();
  if (both && (!answers[0] || answers[0]->code != code::ok)) {
    const lock_guard lock(self->mutex_);
    which->own_watched = false;
  }
  if (both && answers[0] && answers[0]->code == code::no_node) {
    co_return failure(errc::lost, "the claim's node was removed");
  }
  if (!theirs) co_return tl::unexpected(theirs.error());
  if (theirs->code == code::no_node) co_return failure(errc::busy);
  if (theirs->code != code::ok) co_return tl::unexpected(refusal("read", other, theirs->code));
  const auto read = read_data(theirs->body);
  co_return read ? stores::payload_in(read->data) : std::string();
}

task<result<spi::outcome>> zookeeper_store::place_lock(self_ptr self, entry_ptr which,
                                                       net::patience until) {
  auto how = freshness::any;
  for (int round = 0; round < look_limit; ++round) {
    result<line_ptr> around = failure(errc::unavailable);
    if (which->uncertain) co_await value_of(recover(self, which, until));
    if (which->node.empty()) {
      if (!which->claim->queued) {  // a try makes a node only where it may succeed
        around = line_in(co_await list_children(which->life, which->path, how, until));
        if (!around) co_return tl::unexpected(around.error());
        const result<void> fits = co_await check_kind(self, which, *around, until);
        const line& before = **around;
        const std::size_t at = before.blocker_of_next(which->claim->mode != spi::mode::shared);
        if ((!fits || at != line::none) && how == freshness::any) {
          how = freshness::of_now;  // a refusal must be based on current data
          continue;
        }
        if (!fits) co_return tl::unexpected(fits.error());
        if (at != line::none) {
          const std::string path = which->path + "/" + before.nodes()[at].name;
          co_return stores::blocked_by(co_await payload_at(which->life, path, until), false);
        }
      }
      around = co_await join(self, which, until);
    } else {
      around = co_await list_line(self, which, until);
    }
    if (!around) co_return tl::unexpected(around.error());
    const line& order = **around;
    const std::size_t place = order.find(which->node);
    if (place == line::none) co_return failure(errc::lost, "the claim's node was removed");
    bool held = false;
    {
      const lock_guard lock(self->mutex_);
      held = which->where == entry::phase::held;
    }
    if (!held) {
      result<void> fits = self->check_length(place);
      if (fits && (order.has_semaphore() || order.has_latch())) {
        fits = co_await check_kind(self, which, *around, until);
      }
      if (!fits) {
        const result<spi::departure> left = co_await depart(self, which, until);
        co_return tl::unexpected(left ? fits.error() : left.error());
      }
    }
    const std::size_t before = order.blocker_of(place);
    if (before == line::none || held) {
      const lock_guard lock(self->mutex_);
      which->wanted = order.wanted(place);
      co_return spi::granted{};  // settle() fills it in
    }
    const claim_node& blocker = order.nodes()[before];
    if (!which->claim->queued) {
      co_await value_of(depart(self, which, until));
      co_return stores::blocked_by({}, false);
    }
    const bool shortcut = before == 0 && blocker.kind == claim_kind::lock &&
                          order.nodes()[place].kind == claim_kind::lock;
    const bool wanted = place + 1 < order.nodes().size();
    const result<std::string> who =
        co_await stand_behind(self, which, blocker.name, shortcut, until);
    if (who) {
      const lock_guard lock(self->mutex_);
      which->wanted = wanted;
      co_return stores::blocked_by(*who, true);
    }
    if (who.error() != errc::busy) co_return tl::unexpected(who.error());
  }
  co_return failure(errc::unavailable, "zookeeper: the line keeps changing");
}

}  // namespace holdfast::zookeeper
