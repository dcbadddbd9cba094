// Renewals: of all claims that live by one lease, one keepalive and one look at their keys, sent
// together. Of one who waits, also at who is in its way: so a lost event costs a re-check at most.
#include "stores/etcd/etcd_store.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace holdfast::etcd {

struct etcd_store::renewal_round {
  std::vector<entry_ptr> entries;  // null: not known here
  std::vector<spi::renewal> answers;
  std::vector<std::string> behind;  // the key that is in the way, as it was when it was asked for
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
      // Also where another claim has the key by now: it came after us.
      const bool blocker_gone = behind && (keys[first + 1].kvs.empty() ||
                                           keys[first + 1].kvs.front().created > one->created);
      if (own.kvs.empty() || own.kvs.front().created != one->created) {
        if (one->running) continue;  // it is being put or removed just now
        answer.state = spi::hold_state::lost;
        removed.push_back(one);
        continue;
      }
      answer = renewal_of(*one, at, one->life->proven_at(one->owner) >= round.began);
      const bool waits = one->where == entry::phase::waiting;
      // What lets permits and readers in is more than the end of one claim.
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

// Called with the mutex held. Its key is there.
spi::renewal etcd_store::renewal_of(entry& which, time_point at, bool proven) {
  const spi::claim& claim = *which.claim;
  spi::renewal answer;
  answer.at = stores::server_time_of(at);
  answer.recheck_after = stores::recheck_after;
  if (which.where == entry::phase::waiting) {
    answer.state = spi::hold_state::waiting;
    which.end_at = std::max(which.end_at, at + stores::waiter_lease);
    return answer;
  }
  if (which.where != entry::phase::held) return answer;
  answer.grant = grant_of(which, at);
  // Without a proof of now there is nothing to say: the lease may be over.
  if ((claim.renewed && !proven) || answer.grant.ttl == duration{0}) return answer;
  const bool renews = claim.renewed && !which.revoked;
  answer.state = renews ? spi::hold_state::renewed : spi::hold_state::held;
  if (renews) which.end_at = which.end_of_hold(at, at, answer.grant.ttl);
  return answer;
}

}  // namespace holdfast::etcd
