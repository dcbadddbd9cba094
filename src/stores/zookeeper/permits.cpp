// A semaphore: a queue of locks before a folder of leases. Only the first in the queue
// looks at the leases; when there is room, it creates its own and gives up its place in
// one step, all or nothing.
#include "stores/payload.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

std::size_t permits_in_use(const std::vector<std::string>& leases) {
  return line(leases).nodes().size();
}

// A holder if there is one, else a waiter. `lists`: of the name's folder, of locks, of leases.
std::string in_the_way(const entry& which, const std::vector<std::vector<std::string>>& lists) {
  const line holders(lists[2]);
  if (!holders.nodes().empty()) {
    return which.path + "/" + std::string(leases_folder) + "/" + holders.nodes().front().name;
  }
  const line waiters(lists[1]);
  return which.parent + "/" + (waiters.nodes().empty() ? "" : waiters.nodes().front().name);
}

}  // namespace

// All holders and waiters must have the same number; one of them is checked.
task<result<void>> zookeeper_store::check_max(self_ptr, entry_ptr which, children locks,
                                              children leases, net::patience until) {
  std::string path;
  const line holders(leases);
  const line waiters(locks);
  if (!holders.nodes().empty()) {
    path = which->path + "/" + std::string(leases_folder) + "/" + holders.nodes().front().name;
  } else if (!waiters.nodes().empty() && waiters.nodes().front().name != which->node) {
    path = which->parent + "/" + waiters.nodes().front().name;
  }
  if (path.empty()) co_return result<void>{};
  question look{make_get_data(path, false)};
  const reply answer = co_await value_of(ask_one(which->life, std::move(look), until));
  if (answer.code != code::ok) co_return result<void>{};  // gone by now
  const auto read = read_data(answer.body);
  const auto terms = read ? stores::permits_in(read->data) : std::nullopt;
  const std::uint32_t mine = which->claim->max;
  if (!terms || terms->max == mine) co_return result<void>{};
  co_return failure(errc::conflict, "max is " + std::to_string(terms->max) + " there and " +
                                        std::to_string(mine) + " here");
}

// Creates the leases and ends our place in the queue in one step: if we lost that place, nothing is
// created. False: look again.
task<result<bool>> zookeeper_store::take_leases(self_ptr self, entry_ptr which,
                                                net::patience until) {
  const spi::claim& claim = *which->claim;
  const openness acl = self->options_->acl;
  const std::string folder = which->path + "/" + std::string(leases_folder);
  const std::string lease = folder + "/" + prefix_of(which->naming, claim.id, claim_kind::lease);
  const std::string data = stores::data_of(claim.payload, {claim.permits, claim.max});
  std::vector<request> parts;
  parts.push_back(make_set_data(which->node_path(), data));  // its answer has the zxid of all
  for (std::uint32_t i = 0; i < claim.permits; ++i) {
    parts.push_back(make_create(lease, data, node_kind::ephemeral_sequential, acl));
  }
  parts.push_back(make_remove(which->node_path()));
  std::int64_t owner = 0;
  {
    const lock_guard lock(self->mutex_);
    which->uncertain = true;
    which->expects_end = true;
    owner = which->owner;
  }
  const multi_outcome outcome =
      co_await value_of(ask_multi(which->life, std::move(parts), until, owner));
  const bool done = outcome.failed == code::ok && outcome.made.size() == claim.permits;
  {
    const lock_guard lock(self->mutex_);
    which->expects_end = false;
    which->uncertain = outcome.failed == code::connection_loss;
    if (done) {
      which->node.clear();
      which->own_watched = false;
      which->leases = outcome.made;
      which->created = outcome.zxid;
    }
  }
  if (done) co_return true;
  if (outcome.failed != code::no_node) {
    co_return tl::unexpected(refusal("create", lease, outcome.failed));
  }
  co_await value_of(make_containers(which->life, folder, acl, until));
  co_return false;
}

// The children of folders_of(path).
task<result<std::vector<zookeeper_store::children>>> zookeeper_store::look_around(
    std::shared_ptr<session> whom, std::string path, freshness how, net::patience until) {
  std::vector<question> batch;
  if (how == freshness::of_now) batch.push_back({make_barrier()});
  const std::size_t first = batch.size();
  for (const std::string& each : folders_of(path)) {
    batch.push_back({make_get_children(each, false)});
  }
  const replies answers = co_await asking(std::move(whom), std::move(batch), until);
  if (!answers.front()) co_return tl::unexpected(answers.front().error());
  std::vector<children> lists;
  for (std::size_t i = first; i < answers.size(); ++i) {
    lists.push_back(co_await value_of(children_in(answers[i], path)));
  }
  co_return lists;
}

// All leases are created in one request, whose size is limited.
result<void> zookeeper_store::check_size(const entry& which) {
  constexpr std::size_t overhead = 200;  // a lease's own name, its ACL and lengths
  const std::size_t each = which.path.size() + which.claim->payload.size() + overhead;
  if (which.claim->permits <= request_size_limit / each) return {};
  return failure(errc::overloaded, "zookeeper: " + std::to_string(which.claim->permits) +
                                       " permits at once; at most " +
                                       std::to_string(request_size_limit / each));
}

task<result<spi::outcome>> zookeeper_store::place_permit(self_ptr self, entry_ptr which,
                                                         net::patience until) {
  const spi::claim& claim = *which->claim;
  const std::string data = stores::data_of(claim.payload, {claim.permits, claim.max});
  if (const auto fits = check_size(*which); !fits) co_return tl::unexpected(fits.error());
  auto how = freshness::any;
  bool may_succeed = false;
  for (int round = 0; round < look_limit; ++round) {
    if (which->uncertain) co_await value_of(recover(self, which, until));
    if (!which->leases.empty()) {
      question look{make_exists(which->leases.front(), false)};
      const reply seen = co_await value_of(ask_one(which->life, std::move(look), until));
      if (seen.code == code::no_node) co_return failure(errc::lost, "the lease was removed");
      co_return spi::granted{};
    }
    // Creates a node only where it may succeed; what was seen before its creation
    // does not count afterwards.
    const bool tries = which->node.empty() && !claim.queued && !may_succeed;
    const bool joins = which->node.empty();
    std::vector<children> lists;
    if (joins && !tries) {
      std::vector<std::string> folders = folders_of(which->path);
      replies listed;
      const bool made =
          co_await value_of(make_node(self, which, data, std::move(folders), listed, until));
      if (!made) {
        co_await value_of(make_containers(which->life, which->parent, self->options_->acl, until));
        continue;
      }
      for (const result<reply>& each : listed) {
        lists.push_back(co_await value_of(children_in(each, which->path)));
      }
    } else {
      lists = co_await value_of(look_around(which->life, which->path, how, until));
    }
    result<void> fits =
        co_await check_kind(self, which, std::make_shared<const line>(lists[0]), until);
    if (fits && joins) fits = co_await check_max(self, which, lists[1], lists[2], until);
    const line now_in_line(lists[1]);
    const std::size_t place = now_in_line.find(which->node);
    if (fits && joins) {
      fits = self->check_length((place == line::none ? 0 : place) + lists[2].size());
    }
    const bool room = permits_in_use(lists[2]) + claim.permits <= claim.max;
    const bool blocked = !now_in_line.nodes().empty() || !room;
    if (tries && (!fits || blocked) && how == freshness::any) {
      how = freshness::of_now;  // a refusal must be based on current data
      continue;
    }
    if (!fits) {
      const result<spi::departure> left = co_await depart(self, which, until);
      co_return tl::unexpected(left ? fits.error() : left.error());
    }
    const std::string other = in_the_way(*which, lists);
    if (tries && blocked) {
      co_return stores::blocked_by(co_await payload_at(which->life, other, until), false);
    }
    if (tries) {
      may_succeed = true;
      continue;
    }
    if (place == line::none) co_return failure(errc::lost, "the claim's node was removed");
    if (place == 0 && room) {
      const bool taken = co_await value_of(take_leases(self, which, until));
      if (!taken) continue;
      const lock_guard lock(self->mutex_);
      which->wanted = now_in_line.nodes().size() > 1;
      co_return spi::granted{};
    }
    if (!claim.queued) {
      co_await value_of(depart(self, which, until));
      co_return stores::blocked_by({}, false);
    }
    if (place > 0) {
      const std::string& before = now_in_line.nodes()[place - 1].name;
      const result<std::string> who = co_await stand_behind(self, which, before, false, until);
      if (who) co_return stores::blocked_by(*who, true);
      if (who.error() != errc::busy) co_return tl::unexpected(who.error());
      continue;
    }
    const bool full = co_await value_of(await_leases(self, which, until));
    if (full) co_return stores::blocked_by(co_await payload_at(which->life, other, until), true);
  }
  co_return failure(errc::unavailable, "zookeeper: the line keeps changing");
}

// First in the queue and no room: watches the leases, and its own node.
// False: there is room by now.
task<result<bool>> zookeeper_store::await_leases(self_ptr self, entry_ptr which,
                                                 net::patience until) {
  const std::string folder = which->path + "/" + std::string(leases_folder);
  const std::string own = which->node_path();
  std::vector<question> batch;
  std::int64_t owner = 0;
  {
    const lock_guard lock(self->mutex_);
    ++which->look;
    which->shortcut = false;
    which->armed = true;
    which->looked_at = self->now();
    owner = which->owner;
    self->watch_blocker(which, opcode::get_children, folder);
    batch.push_back({make_get_children(folder, true), which->watch, folder});
    if (!std::exchange(which->own_watched, true)) {
      which->own_event = false;
      batch.push_back({make_get_data(own, true), self->own_watcher(which), own});
    }
  }
  const replies answers = co_await asking(which->life, std::move(batch), until, owner);
  if (answers.size() == 2 && (!answers[1] || answers[1]->code != code::ok)) {
    const lock_guard lock(self->mutex_);
    which->own_watched = false;
  }
  if (answers.size() == 2 && answers[1] && answers[1]->code == code::no_node) {
    co_return failure(errc::lost, "the claim's node was removed");
  }
  if (!answers[0]) co_return tl::unexpected(answers[0].error());
  if (answers[0]->code != code::ok) co_return false;
  const children names = co_await value_of(read_children(answers[0]->body));
  co_return permits_in_use(names) + which->claim->permits > which->claim->max;
}

}  // namespace holdfast::zookeeper
