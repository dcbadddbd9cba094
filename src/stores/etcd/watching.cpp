// What happens to keys while a claim holds: its own is removed or revoked, or somebody queues
// behind it. And renewals.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

namespace holdfast::etcd {

// Called with the mutex held. Collects what is to be removed when it is free.
void etcd_store::drop_watches(const entry_ptr& which, std::vector<watch_hub::watch_id>& into) {
  which->watch.reset();
  if (which->own_watch != 0) into.push_back(std::exchange(which->own_watch, 0));
  std::ranges::move(std::exchange(which->others_watches, {}), std::back_inserter(into));
}

// A hold that lasts. Both watches cause a look once they exist.
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
    if (which->where != entry::phase::held || which->leaving()) return;
    for (const auto& each : news.events) {
      if (each.kv.key != which->key) look_again = true;
      removed = removed ||
                (each.deleted && each.kv.key == which->key && each.kv.modified > which->created);
    }
  }
  if (removed) return gone(which, {errc::lost, "the claim's key was removed"});
  if (look_again) look_at_hold(shared_from_this(), which);
}

// Somebody came. For permits only a look shows whether anybody waits.
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
  const time_point deadline = self->now() + which->time_to_look();
  look::of scope = scope_of(which->claim->mode);
  {
    const lock_guard lock(self->mutex_);
    if (which->wanted) scope = look::of::own;  // others are of no interest any more
  }
  const result<line> order = co_await look_at(self, which->prefix, scope, which->key, deadline);
  if (!order) co_return;  // the next renewal looks again
  std::shared_ptr<spi::wakeup> wanted;
  std::shared_ptr<spi::wakeup> revoked;
  std::vector<watch_hub::watch_id> unneeded;
  bool removed = false;
  {
    const lock_guard lock(self->mutex_);
    if (which->where != entry::phase::held || which->leaving()) co_return;
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

// Renewals: for all claims that live by one lease, one keepalive and one look at their
// keys, sent together. For a waiter, also a look at its blocker, so that a lost event
// costs at most a re-check.

struct etcd_store::renewal_round {
  std::vector<entry_ptr> entries;  // null: not known here
  std::vector<spi::renewal> answers;
  std::vector<std::string> behind;  // the blocking key, as it was when the request was made
  time_point began{};
  net::patience until;
  std::atomic<std::size_t> left{0};
  spi::completion<std::vector<spi::renewal>> done;

  void finish_one() {
    if (left.fetch_sub(1) == 1) done(std::move(answers));
  }
};

void etcd_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                       spi::completion<std::vector<spi::renewal>> done) {
  if (closed_) return done(failure(errc::cancelled, "closed"));
  auto round = std::make_shared<renewal_round>();
  round->answers.resize(claims.size());
  round->entries.resize(claims.size());
  round->behind.resize(claims.size());
  round->began = now();
  round->until = context;
  round->done = std::move(done);
  std::map<std::shared_ptr<lease_keeper>, std::vector<std::size_t>> groups;
  {
    const lock_guard lock(mutex_);
    for (std::size_t i = 0; i < claims.size(); ++i) {
      round->answers[i].at = stores::server_time_of(round->began);
      round->answers[i].recheck_after = stores::recheck_after;
      const auto found = entries_.find(claims[i]->id);
      if (found == entries_.end()) {
        round->answers[i].state = spi::hold_state::lost;
        continue;
      }
      entry& which = *found->second;
      if (which.created == 0) continue;  // not there yet: unknown
      round->entries[i] = found->second;
      if (which.where == entry::phase::waiting && !which.permit()) round->behind[i] = which.watched;
      groups[which.life].push_back(i);
    }
  }
  round->left = groups.size() + 1;
  for (auto& [life, which] : groups) renew_on(shared_from_this(), life, round, std::move(which));
  round->finish_one();
}

flow etcd_store::renew_on(self_ptr self, std::shared_ptr<lease_keeper> life,
                          std::shared_ptr<renewal_round> round, std::vector<std::size_t> which) {
  std::vector<std::string> keys;
  for (const std::size_t each : which) {
    keys.push_back(round->entries[each]->key);
    if (!round->behind[each].empty()) keys.push_back(round->behind[each]);
  }
  range_options how;
  how.keys_only = true;
  how.limit = 1;
  std::vector<call> calls;
  for (std::size_t from = 0; from < keys.size(); from += txn_limit) {
    txn_writer step;
    for (std::size_t i = from; i < std::min(from + txn_limit, keys.size()); ++i) {
      step.then_range(range_body({keys[i]}, how));
    }
    calls.push_back(std::move(step).made());
  }
  const std::int64_t lease = life->id();
  lease_note proof;
  const replies answers = co_await lease_keeper::ask(
      life, lease, std::move(calls), lease_keeper::renews::always, round->until, proof);
  std::vector<range_answer> seen;
  for (const result<reply>& each : answers) {
    const auto parts =
        each && each->ok() ? read_txn(each->body) : result<txn_answer>(failure(errc::unavailable));
    if (!parts) break;
    for (const auto& part : parts->parts) {
      const auto& kvs = part.range.kvs;
      if (!kvs.empty() && kvs.front().lease == lease) life->accept(proof);
      seen.push_back(part.range);
    }
  }
  const bool answered = seen.size() == keys.size();
  for (const result<reply>& each : answers) {
    if (each) continue;
    for (const std::size_t one : which) round->answers[one].why = each.error().detail;
    break;
  }
  self->take_renewals(*round, which, seen, answered);
  round->finish_one();
}

void etcd_store::take_renewals(renewal_round& round, const std::vector<std::size_t>& which,
                               const std::vector<range_answer>& keys, bool answered) {
  std::vector<entry_ptr> removed;
  std::vector<entry_ptr> freed;
  const time_point at = now();
  {
    const lock_guard lock(mutex_);
    std::size_t next = 0;
    for (const std::size_t each : which) {
      const entry_ptr& one = round.entries[each];
      spi::renewal& answer = round.answers[each];
      answer.at = stores::server_time_of(at);
      const bool behind = !round.behind[each].empty();
      const std::size_t first = std::exchange(next, next + (behind ? 2 : 1));
      if (one->where == entry::phase::over) {
        answer.state = spi::hold_state::lost;
        continue;
      }
      if (!answered) continue;
      const range_answer& own = keys[first];
      // Also if another claim has the key by now: it came after us.
      const bool blocker_gone = behind && (keys[first + 1].kvs.empty() ||
                                           keys[first + 1].kvs.front().created > one->created);
      if (own.kvs.empty() || own.kvs.front().created != one->created) {
        if (one->running) continue;  // it is just being put or removed
        answer.state = spi::hold_state::lost;
        removed.push_back(one);
        continue;
      }
      const bool waits = one->where == entry::phase::waiting;
      answer = renewal_of(*one, at, waits || one->life->proven_at(one->owner) >= round.began);
      // Permits and readers may be let in by more than the end of one claim.
      const bool any_end = one->permit() ? waits && first_for_permits(one)
                                         : one->claim->mode != spi::mode::exclusive;
      if (waits && (blocker_gone || any_end)) {
        if (one->until.deadline < at + stores::recheck_after)
          one->until = at + stores::recheck_after;
        freed.push_back(one);
      }
    }
  }
  for (const entry_ptr& each : removed) gone(each, {errc::lost, "the claim's key was removed"});
  for (const entry_ptr& each : freed) kick(each);
}

}  // namespace holdfast::etcd
