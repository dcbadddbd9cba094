// What happens to keys while a claim holds: its own is taken away or asked back, somebody comes behind
// it.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::etcd {

namespace {

duration guard_patience(const spi::claim& claim) {
  return std::min<duration>(std::max<duration>(claim.ttl / 3, std::chrono::milliseconds(500)),
                            std::chrono::seconds(5));
}

}  // namespace

// Called with the mutex held: what is to be removed when it is free.
void etcd_store::drop_watches(const entry_ptr& which, std::vector<watch_hub::watch_id>& into) {
  which->watch.reset();
  if (which->own_watch != 0) into.push_back(std::exchange(which->own_watch, 0));
  std::ranges::move(std::exchange(which->others_watches, {}), std::back_inserter(into));
}

// A hold that lasts. Both watches bring about a look once they are there.
void etcd_store::guard(const entry_ptr& which) {
  const auto own = watches_->add(
      which->keys(), watch_filter::none,
      [weak = weak_from_this(), claim = std::weak_ptr(which)](const watch_news& news) {
        const auto self = weak.lock();
        const auto alive = claim.lock();
        if (self && alive && !self->closed_) self->own_news(alive, news);
      });
  std::vector<watch_hub::watch_id> others;
  for (const key_range& each : keys_around(which->prefix, which->claim->mode, which->key)) {
    if (each.key == which->key) continue;
    others.push_back(watches_->add(
        each, watch_filter::no_delete,
        [weak = weak_from_this(), claim = std::weak_ptr(which)](const watch_news& news) {
          const auto self = weak.lock();
          const auto alive = claim.lock();
          if (self && alive && !self->closed_) self->others_news(alive, news);
        }));
  }
  std::vector<watch_hub::watch_id> unneeded;
  {
    const lock_guard lock(mutex_);
    which->own_watch = own;
    which->others_watches = std::move(others);
    if (which->where == entry::phase::over) {
      drop_watches(which, unneeded);
    } else if (which->wanted) {
      unneeded = std::exchange(which->others_watches, {});
    }
  }
  for (const auto each : unneeded) watches_->remove(each);
}

void etcd_store::own_news(const entry_ptr& which, const watch_news& news) {
  bool removed = false;
  bool look_again = news.created;
  {
    const lock_guard lock(mutex_);
    if (which->where != entry::phase::held || which->ending || !which->leaves.empty()) return;
    for (const auto& each : news.events) {
      if (each.kv.key != which->key) look_again = true;
      removed = removed ||
                (each.deleted && each.kv.key == which->key && each.kv.modified > which->created);
    }
  }
  if (removed) return gone(which, {errc::lost, "the claim's key was removed"});
  if (look_again) look_at_hold(shared_from_this(), which);
}

// Somebody came. Whether one with permits waits is seen by a look only.
void etcd_store::others_news(const entry_ptr& which, const watch_news& news) {
  std::shared_ptr<spi::wakeup> tell;
  std::vector<watch_hub::watch_id> unneeded;
  bool look_again = news.created;
  {
    const lock_guard lock(mutex_);
    if (which->where != entry::phase::held || which->wanted) return;
    for (const auto& each : news.events) {
      const auto key = parse_key(std::string_view(each.kv.key).substr(which->prefix.size()));
      if (!key || key->part != key_part::claim || key->id == which->id) continue;
      if (which->permit()) {
        look_again = true;
      } else if (which->mode != spi::mode::shared || key->kind != claim_kind::reader) {
        which->wanted = true;
      }
    }
    if (which->wanted) {
      tell = which->wakeup;
      unneeded = std::exchange(which->others_watches, {});
    }
  }
  for (const auto each : unneeded) watches_->remove(each);
  if (tell) return tell->wanted();
  if (look_again) look_at_hold(shared_from_this(), which);
}

flow etcd_store::look_at_hold(self_ptr self, entry_ptr which) {
  const time_point deadline = self->now() + guard_patience(*which->claim);
  const result<line> order =
      co_await look_at(self, which->prefix, scope_of(which->claim->mode), which->key, deadline);
  if (!order) co_return;  // the next renewal looks again
  std::shared_ptr<spi::wakeup> wanted;
  std::shared_ptr<spi::wakeup> revoked;
  std::vector<watch_hub::watch_id> unneeded;
  bool removed = false;
  {
    const lock_guard lock(self->mutex_);
    if (which->where != entry::phase::held || which->ending || !which->leaves.empty()) co_return;
    const std::size_t place = order->find(which->id, which->created);
    removed = place == line::none && !which->running;
    if (place != line::none) {
      if (order->wanted(place) && !std::exchange(which->wanted, true)) {
        wanted = which->wakeup;
        unneeded = std::exchange(which->others_watches, {});
      }
      if (order->claims()[place].revoked && !std::exchange(which->revoked, true)) {
        revoked = which->wakeup;
      }
    }
  }
  for (const auto each : unneeded) self->watches_->remove(each);
  if (removed) co_return self->gone(which, {errc::lost, "the claim's key was removed"});
  if (wanted && !self->closed_) wanted->wanted();
  if (revoked && !self->closed_) revoked->gone({errc::lost, "revoked: not renewed any more"});
}

}  // namespace holdfast::etcd
