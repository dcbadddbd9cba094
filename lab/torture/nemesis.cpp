#include "torture/nemesis.hpp"

#include <algorithm>

namespace holdfast::torture {

namespace {

// Up to an hour, in either direction.
duration jump_of(const order& one) {
  constexpr std::int64_t hour = std::chrono::nanoseconds(std::chrono::hours(1)).count();
  return duration(one.begin.count() * 7919 % (2 * hour) - hour);
}

// Which of a client's next system calls.
std::int64_t call_of(const order& one) { return 1 + one.begin.count() / 1000 % 400; }

}  // namespace

nemesis::nemesis(const plan& wanted, testbed& engine, client_processes& clients, time_point start)
    : plan_(wanted), testbed_(engine), clients_(clients), start_(start) {
  for (std::size_t i = 0; i < wanted.schedule.size(); ++i) {
    const order& each = wanted.schedule[i];
    steps_.push_back({each.begin, i, true});
    steps_.push_back({each.begin + each.length, i, false});
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const step& left, const step& right) { return left.at < right.at; });
}

void nemesis::note(sim::what kind, fault what, std::int32_t process) {
  sim::record line;
  line.at = clock::now() - start_;
  line.kind = kind;
  line.process = process;
  line.number = static_cast<std::int64_t>(what);
  records_.push_back(line);
}

// A client that is already affected by another fault is left alone, if there is another client.
std::uint32_t nemesis::target_of(const order& one) const {
  if (!hits_one_client(one.what)) return one.target;
  for (std::uint32_t i = 0; i < plan_.clients; ++i) {
    const std::uint32_t client = (one.target + i) % plan_.clients;
    const bool free = std::none_of(active_.begin(), active_.end(), [&](const auto& each) {
      return each.second.processes.front() != sim::nobody && each.second.target == client;
    });
    if (free) return client;
  }
  return one.target % plan_.clients;
}

std::vector<std::int32_t> nemesis::victims_of(fault what, std::uint32_t target) const {
  if (hits_one_client(what)) return {clients_.process_of(target)};
  std::vector<std::int32_t> those;
  if (hits_others(what)) {
    at_others(target, [&](std::uint32_t each) { those.push_back(clients_.process_of(each)); });
  }
  if (those.empty()) those.push_back(sim::nobody);
  return those;
}

void nemesis::begin(std::size_t which) {
  const order& one = plan_.schedule[which];
  // Slow servers make a run longer, but only up to a limit.
  if (late_ > plan_.length && fired_.contains(one.what)) return;
  fired_.insert(one.what);
  const std::uint32_t target = target_of(one);
  active_[which] = {target, victims_of(one.what, target)};
  for (const std::int32_t each : active_[which].processes) {
    note(sim::what::trouble_began, one.what, each);
  }
  ++begun_;
  switch (one.what) {
    case fault::pause_client:
      return clients_.pause(target);
    case fault::kill_client:
      return clients_.replace(target);
    case fault::clock_jump:
      return clients_.set_clock(target, jump_of(one));
    case fault::disk_full:
      return clients_.forbid_writing(true);
    case fault::stop_at_call:
      return clients_.stop_at_call(target, call_of(one));
    case fault::kill_at_call:
      return clients_.kill_at_call(target, call_of(one));
    case fault::pause_others:
      return at_others(target, [&](std::uint32_t each) { clients_.pause(each); });
    case fault::kill_others:
      return at_others(target, [&](std::uint32_t each) { clients_.replace(each); });
    default:
      return timed([&] { testbed_.begin(one.what, target); });
  }
}

void nemesis::end(std::size_t which) {
  const auto found = active_.find(which);
  if (found == active_.end()) return;
  const victim whom = found->second;
  const fault what = plan_.schedule[which].what;
  switch (what) {
    case fault::pause_client:
    case fault::stop_at_call:
      clients_.resume(whom.target);
      break;
    case fault::pause_others:
      at_others(whom.target, [&](std::uint32_t each) { clients_.resume(each); });
      break;
    case fault::kill_at_call:
      if (clients_.process_of(whom.target) == whom.processes.front()) clients_.replace(whom.target);
      break;
    case fault::kill_client:
    case fault::kill_others:
    case fault::clock_jump:  // stays as it is
      break;
    case fault::disk_full:
      clients_.forbid_writing(false);
      break;
    default:
      timed([&] { testbed_.end(what, whom.target); });
  }
  for (const std::int32_t each : whom.processes) note(sim::what::trouble_ended, what, each);
  active_.erase(which);
}

void nemesis::act() {
  while (!done() && steps_[next_].at + late_ <= clock::now() - start_) {
    const step now = steps_[next_++];
    if (now.begins) {
      begin(now.order);
    } else {
      end(now.order);
    }
  }
}

void nemesis::heal() {
  next_ = steps_.size();
  while (!active_.empty()) end(active_.begin()->first);
}

}  // namespace holdfast::torture
