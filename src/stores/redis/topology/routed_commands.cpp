// Routing of commands: to the partition's home, or back into the queue until there is one.
#include "stores/redis/topology/moving_topology.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace holdfast::redis {

void moving_topology::run(partition which, pending_ptr call) {
  pending& its = *call;
  auto done = [call = std::move(call)](result<reply> answer) { call->answer(std::move(answer)); };
  dispatch({std::move(its.what), its.runs, which, 0, its.until, std::move(done), 0, false, {}, {}});
}

void moving_topology::send(partition which, const command& what, const net::patience& until,
                           spi::completion<reply> done) {
  dispatch({what, nullptr, which, 0, until, std::move(done), 0, false, {}, {}});
}

void moving_topology::dispatch(routed_command which) {
  if (guard_.forked()) {
    return which.done(failure(errc::cancelled, "forked from the client's process"));
  }
  mutex_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    return which.done(failure(errc::cancelled, "closed"));
  }
  partition_state& mine = partitions_[which.where];
  which.number = ++numbers_;
  if (mine.home != nullptr && !mine.draining && mine.stalled.empty()) {
    const std::shared_ptr<node> to = mine.home;
    lock.unlock();
    return transmit(to, std::move(which));
  }
  if (stalled_ >= stalled_limit || which.until.deadline <= net_.reactor->now()) {
    const bool late = stalled_ < stalled_limit;
    lock.unlock();
    const error why{late ? errc::unavailable : errc::overloaded,
                    where() + (late ? ": no time left" : ": too many commands wait"), late};
    return which.done(tl::unexpected(why));
  }
  const bool homeless = mine.home == nullptr;
  stall(mine, std::move(which));
  lock.unlock();
  if (homeless) look_around();
}

void moving_topology::transmit(const std::shared_ptr<node>& to, routed_command which) {
  auto kept = std::make_unique<routed_command>(std::move(which));
  routed_command& out = *kept;
  out.from = to->options().where.host;
  auto done = [weak = weak_from_this(), kept = std::move(kept)](result<reply> answer) mutable {
    if (const auto self = weak.lock()) return self->answered(std::move(*kept), std::move(answer));
    kept->done(failure(errc::unavailable, "closed"));
  };
  if (out.runs != nullptr) {
    return to->run(out.where,
                   make_call(*out.runs, out.what, out.until, std::move(done), out.asking));
  }
  to->send(out.what, out.until, std::move(done), out.asking);
}

void moving_topology::answered(routed_command which, result<reply> answer) {
  if (!answer) {
    // The servers that named this one did answer: its failure is a temporary outage, like a
    // failover, not an engine that was never there.
    answer.error().unsent = false;
    return which.done(std::move(answer));
  }
  reply said = std::move(*answer);
  if (said.is_error()) {
    which.refusal = said.text;
    const verdict how = judge(which, said);
    if (how.next != verdict::what::answer) return again(std::move(which), how);
  }
  executed(which);
  which.done(std::move(said));
}

// Earlier commands that were not executed must not be executed after it.
void moving_topology::executed(const routed_command& which) {
  if (which.runs == nullptr) return;  // plain commands have no order to keep
  std::vector<routed_command> overtaken;
  {
    const std::lock_guard lock(mutex_);
    partition_state& mine = partitions_[which.where];
    mine.executed = std::max(mine.executed, which.number);
    mine.pause = {};
    const auto first = mine.stalled.begin();
    const auto behind =
        std::ranges::lower_bound(mine.stalled, which.number, {}, &routed_command::number);
    std::move(first, behind, std::back_inserter(overtaken));
    mine.stalled.erase(first, behind);
    stalled_ -= overtaken.size();
  }
  for (routed_command& each : overtaken) {
    each.done(failure(errc::unavailable, where() + ": " + each.refusal));
  }
}

void moving_topology::again(routed_command which, const verdict& how) {
  mutex_lock lock(mutex_);
  partition_state& mine = partitions_[which.where];
  const time_point now = net_.reactor->now();
  if (closed_ || which.number < mine.executed || which.until.deadline <= now) {
    lock.unlock();
    return which.done(failure(errc::unavailable, where() + ": " + which.refusal));
  }
  const bool many = ++which.tries > hops_at_once;
  which.asking = how.next == verdict::what::elsewhere && !many;
  if (which.asking) {
    lock.unlock();
    return transmit(how.at, std::move(which));
  }
  const bool later = many || how.next != verdict::what::again;
  if (later && mine.again_at <= now) {
    mine.pause = std::clamp(mine.pause * 2, shortest_pause, longest_pause);
    mine.again_at = now + mine.pause;
  }
  const partition where = which.where;
  stall(mine, std::move(which));
  lock.unlock();
  if (!later) drain(where);
}

// Puts it in its place. Called with the mutex held.
void moving_topology::stall(partition_state& mine, routed_command which) {
  arm(mine.home != nullptr ? std::min(which.until.deadline, mine.again_at)
                           : which.until.first_end());
  const auto place =
      std::ranges::upper_bound(mine.stalled, which.number, {}, &routed_command::number);
  mine.stalled.insert(place, std::move(which));
  ++stalled_;
}

// Called with the mutex held. One timer for all, set again only for an earlier time.
void moving_topology::arm(time_point at) {
  if (at >= armed_at_ || closed_) return;
  net_.reactor->cancel(timer_);
  armed_at_ = at;
  timer_ = net_.reactor->at(at, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
}

void moving_topology::tick() {
  std::vector<routed_command> expired;
  std::vector<partition> due;
  std::string trouble;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    armed_at_ = time_point::max();
    trouble = trouble_;
    const time_point now = net_.reactor->now();
    time_point next = time_point::max();
    for (std::size_t i = 0; i < partitions_.size(); ++i) {
      partition_state& mine = partitions_[i];
      const auto end_of = [&mine](const routed_command& each) {
        return mine.home == nullptr ? each.until.first_end() : each.until.deadline;
      };
      const auto late = std::ranges::stable_partition(
          mine.stalled, [&](const routed_command& each) { return end_of(each) > now; });
      std::ranges::move(late, std::back_inserter(expired));
      mine.stalled.erase(late.begin(), late.end());
      if (mine.stalled.empty()) continue;
      for (const routed_command& each : mine.stalled) next = std::min(next, end_of(each));
      if (mine.home == nullptr || mine.draining) continue;
      if (mine.again_at <= now) {
        due.push_back(static_cast<partition>(i));
      } else {
        next = std::min(next, mine.again_at);
      }
    }
    stalled_ -= expired.size();
    if (next != time_point::max()) arm(next);
  }
  for (routed_command& each : expired) {
    const std::string why = each.refusal.empty() ? trouble : each.refusal;
    // A command that was refused before was not executed either.
    const std::string text = ": no answer in time" + (why.empty() ? "" : " (" + why + ")");
    each.done(tl::unexpected(error{errc::unavailable, where() + text, true}));
  }
  for (const partition each : due) drain(each);
}

// Sends what is stalled, in order. New commands queue behind it.
void moving_topology::drain(partition which) {
  mutex_lock lock(mutex_);
  partition_state& mine = partitions_[which];
  const time_point now = net_.reactor->now();
  if (closed_ || mine.draining || mine.home == nullptr || mine.stalled.empty()) return;
  if (mine.again_at > now) return arm(mine.again_at);
  mine.draining = true;
  std::vector<routed_command> batch = std::exchange(mine.stalled, {});
  stalled_ -= batch.size();
  const std::shared_ptr<node> to = mine.home;
  lock.unlock();
  for (routed_command& each : batch) transmit(to, std::move(each));
  lock.lock();
  mine.draining = false;
  if (!mine.stalled.empty()) arm(std::max(mine.again_at, now));
}

void moving_topology::refuse_stalled(const error& why) {
  std::vector<routed_command> refused;
  {
    const std::lock_guard lock(mutex_);
    for (partition_state& mine : partitions_) {
      if (mine.home != nullptr) continue;
      const auto those =
          std::ranges::stable_partition(mine.stalled, [&](const routed_command& each) {
            return why == errc::unavailable && !each.until.takes_failure();
          });
      std::ranges::move(those, std::back_inserter(refused));
      mine.stalled.erase(those.begin(), those.end());
    }
    stalled_ -= refused.size();
  }
  for (routed_command& each : refused) each.done(tl::unexpected(net::unsent(why)));
}

}  // namespace holdfast::redis
