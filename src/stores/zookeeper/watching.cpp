// What happens to nodes while a claim waits or holds: the one before it ends, its own is removed or
// revoked, somebody queues behind it.
#include "stores/payload.hpp"
#include "stores/zookeeper/zookeeper_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::zookeeper {

namespace {

constexpr duration folder_look_limit = std::chrono::seconds(5);

// A member of a folder watch that need not be notified any more. Called
// with the store's mutex held.
bool has_ended(const std::weak_ptr<entry>& member) {
  const entry_ptr one = member.lock();
  return !one || one->where != entry::phase::held || one->wanted;
}

}  // namespace

// Called with the mutex held. The previous watch is ignored from now on.
void zookeeper_store::watch_blocker(const entry_ptr& which, opcode by, const std::string& path) {
  if (which->watch) which->life->unwatch(which->watched_by, which->watched, which->watch);
  which->watched_by = by;
  which->watched = path;
  which->watch = std::make_shared<watcher>([weak = weak_from_this(), claim = std::weak_ptr(which),
                                            look = which->look](const watch_event& event) {
    const auto self = weak.lock();
    const auto alive = claim.lock();
    if (self && alive) self->blocker_event(alive, look, event);
  });
}

std::shared_ptr<watcher> zookeeper_store::own_watcher(const entry_ptr& which) {
  return std::make_shared<watcher>(
      [weak = weak_from_this(), claim = std::weak_ptr(which)](const watch_event& event) {
        const auto self = weak.lock();
        const auto alive = claim.lock();
        if (self && alive) self->own_event(alive, event);
      });
}

void zookeeper_store::blocker_event(const entry_ptr& which, std::uint64_t look,
                                    const watch_event& event) {
  if (closed_) return;
  std::shared_ptr<spi::wakeup> tell;
  spi::granted grant;
  {
    const lock_guard lock(mutex_);
    if (which->where == entry::phase::over || which->look != look) return;
    const time_point at = now();
    which->armed = false;
    // It was first and we were next; nothing happened to our node: we are first. Any other event,
    // and any other queue, needs a look.
    const bool ours = event.what == watch_event::type::deleted && which->shortcut &&
                      !which->running && which->where == entry::phase::waiting &&
                      which->own_watched && !which->own_event;
    if (ours) grant = grant_of(*which, at);
    if (ours && grant.ttl > duration{0}) {
      pass_to(*which, entry::phase::held);
      which->granted_at = at;
      which->end_at = which->end_of_hold(at, at, grant.ttl);
      tell = which->wakeup;
    }
  }
  if (tell) return tell->notify(grant);
  look_again(which);
}

void zookeeper_store::own_event(const entry_ptr& which, const watch_event& event) {
  if (closed_) return;
  using type = watch_event::type;
  bool held = false;
  {
    const lock_guard lock(mutex_);
    which->own_watched = false;
    which->own_event = true;
    if (which->where == entry::phase::over || which->in_doubt()) return;
    if (event.path != which->token_path()) return;  // of a node that was replaced
    held = which->where == entry::phase::held;
    if (held && event.what != type::deleted) which->own_watched = true;
  }
  if (event.what == type::deleted) return gone(which, {errc::lost, "the claim's node was removed"});
  if (!held) return look_again(which);
  look_at_own(shared_from_this(), which);
}

// A hold that lasts. After an unanswered change of mode, finds out which node it has.
void zookeeper_store::guard(const entry_ptr& which) {
  bool unknown = false;
  {
    const lock_guard lock(mutex_);
    unknown = which->uncertain;
    if (unknown) which->own_watched = false;
  }
  if (unknown) return look_again(which);
  look_at_own(shared_from_this(), which);
  const listings::folder where{which->life, which->parent};
  {
    const lock_guard lock(mutex_);
    if (which->wanted || std::exchange(which->folder_watched, true)) return;
    folder_watch& those = folder_watches_[where];
    if (!those.watch) those.watch = folder_watcher(where);
    those.members.push_back(which);
    if (!folder_stirred(those)) return;
  }
  look_at_folder(shared_from_this(), where);
}

flow zookeeper_store::look_at_own(self_ptr self, entry_ptr which) {
  std::string path;
  std::int64_t owner = 0;
  std::vector<question> batch;
  {
    const lock_guard lock(self->mutex_);
    if (which->where != entry::phase::held || which->in_doubt()) co_return;
    which->own_event = false;
    path = which->token_path();
    owner = which->owner;
    batch.push_back({make_get_data(path, true), self->own_watcher(which), path});
  }
  const net::patience until = self->now() + which->time_to_look();
  const replies answers = co_await asking(which->life, std::move(batch), until, owner);
  const result<reply>& answer = answers.front();
  std::shared_ptr<spi::wakeup> tell;
  bool removed = false;
  {
    const lock_guard lock(self->mutex_);
    if (which->where != entry::phase::held || which->in_doubt()) co_return;
    if (path != which->token_path()) co_return;
    if (!answer || answer->code != code::ok) which->own_watched = false;  // tick() tries again
    removed = answer && answer->code == code::no_node;
    const auto read = answer && answer->code == code::ok ? read_data(answer->body)
                                                         : result<node_data>(failure(errc::lost));
    if (read && read->data == revoke_message && !std::exchange(which->revoked, true)) {
      tell = which->wakeup;
    }
  }
  if (removed) self->gone(which, {errc::lost, "released by force"});
  if (tell && !self->closed_) tell->gone({errc::lost, "revoked: not renewed any more"});
}

// Called with the mutex held: somebody may have queued behind the members. True: look now; false:
// the look that is under way will be repeated.
bool zookeeper_store::folder_stirred(folder_watch& which) {
  which.stirred = true;
  return !std::exchange(which.looking, true);
}

// Called with the mutex held: those whose holders have all ended refer to their sessions no more.
void zookeeper_store::end_idle_watches() {
  std::erase_if(folder_watches_, [](const auto& each) {
    return !each.second.looking && std::ranges::all_of(each.second.members, has_ended);
  });
}

std::shared_ptr<watcher> zookeeper_store::folder_watcher(const listings::folder& where) {
  return std::make_shared<watcher>([weak = weak_from_this(), life = std::weak_ptr(where.first),
                                    folder = where.second](const watch_event&) {
    const auto self = weak.lock();
    const listings::folder there{life.lock(), folder};
    if (!self || !there.first || self->closed_) return;
    {
      const lock_guard lock(self->mutex_);
      const auto found = self->folder_watches_.find(there);
      if (found == self->folder_watches_.end() || !self->folder_stirred(found->second)) return;
      if (std::erase_if(found->second.members, has_ended); found->second.members.empty()) {
        self->folder_watches_.erase(found);
        return;
      }
    }
    look_at_folder(self, there);
  });
}

// One list for all holders in a folder, and one at a time.
flow zookeeper_store::look_at_folder(self_ptr self, listings::folder where) {
  for (;;) {
    std::vector<question> batch;
    {
      const lock_guard lock(self->mutex_);
      folder_watch& those = self->folder_watches_.at(where);
      those.stirred = false;
      batch.push_back({make_get_children(where.second, true), those.watch, where.second});
    }
    const net::patience until = self->now() + folder_look_limit;
    const replies answers = co_await asking(where.first, std::move(batch), until);
    const auto names = answers[0] && answers[0]->code == code::ok
                           ? read_children(answers[0]->body)
                           : result<children>(failure(errc::unavailable));
    const line order(names ? *names : children{});
    std::vector<std::shared_ptr<spi::wakeup>> tell;
    bool again = false;
    {
      const lock_guard lock(self->mutex_);
      const auto found = self->folder_watches_.find(where);
      folder_watch& those = found->second;
      std::erase_if(those.members, [&](const std::weak_ptr<entry>& each) {
        if (has_ended(each)) return true;
        const entry_ptr one = each.lock();
        const std::size_t place = order.find(one->node);
        one->wanted =
            one->permit() ? !order.nodes().empty() : place != line::none && order.wanted(place);
        if (one->wanted) tell.push_back(one->wakeup);
        return one->wanted;
      });
      again = names && those.stirred && !those.members.empty();
      if (!again) those.looking = false;
      if (those.members.empty()) self->folder_watches_.erase(found);
    }
    if (self->closed_) co_return;
    for (const auto& each : tell) each->wanted();
    if (!again) co_return;
  }
}

}  // namespace holdfast::zookeeper
