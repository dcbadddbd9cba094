#include "cli/serve/event_log.hpp"

#include "cli/inspection.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli::serve {

event_log::event_log(std::vector<std::string> engines)
    : engines_(std::move(engines)), tallies_(engines_.size()) {}

std::int64_t event_log::this_second() {
  // Never within the first of the charts' seconds, however short the machine has been up.
  return std::chrono::floor<std::chrono::seconds>(clock::now().time_since_epoch()).count() +
         static_cast<std::int64_t>(most_seconds);
}

void event_log::advance(tally& tally, std::int64_t second) {
  const auto size = static_cast<std::int64_t>(most_seconds);
  for (std::int64_t at = std::max(tally.second + 1, second - size + 1); at <= second; ++at) {
    tally.by_second[static_cast<std::size_t>(at % size)] = {};
  }
  tally.second = std::max(tally.second, second);
}

void event_log::note(std::size_t engine, const spi::store_event& event) {
  const auto at = std::chrono::system_clock::now();
  json::value document = json::of(event, at);
  document["engine"] = engines_[engine];
  const std::string text = "event: lock\ndata: " + json::line(document) + "\n";
  {
    const std::lock_guard lock(mutex_);
    tally& counted = tallies_[engine];
    advance(counted, this_second());
    const auto kind = static_cast<std::size_t>(event.kind);
    ++counted.all[kind];
    ++counted.by_second[static_cast<std::size_t>(counted.second) % most_seconds][kind];
    recent_.push_back({engine, event.name, "id: " + std::to_string(++last_) + "\n" + text});
    if (recent_.size() > most_recent_events) recent_.pop_front();
    remember(engine, event, at);
  }
  changed_.notify_all();
}

// A busy name keeps no more than its share, so that it does not displace a quiet one.
void event_log::remember(std::size_t engine, const spi::store_event& event, wall_time at) {
  const std::string name = key_of(engine, event.name);
  auto found = past_.find(name);
  if (found == past_.end()) {
    touched_.push_back(name);
    found = past_.emplace(name, history{{}, std::prev(touched_.end())}).first;
  } else {
    touched_.splice(touched_.end(), touched_, found->second.place);
  }
  std::deque<past_event>& events = found->second.events;
  events.push_back({at, event.kind, event.mode, event.claim, event.fence, event.payload});
  ++past_events_;
  if (events.size() > most_past_of_a_name) {
    events.pop_front();
    --past_events_;
  }
  while (past_events_ > most_past) {
    const auto oldest = past_.find(touched_.front());
    past_events_ -= oldest->second.events.size();
    past_.erase(oldest);
    touched_.pop_front();
  }
}

event_log::batch event_log::after(std::uint64_t number, const filter& only, duration within) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [&] { return closed_ || last_ > number; });
  batch made{.text = {}, .last = last_, .missed = 0};
  // A number that we have not reached yet: from another run of this program.
  const std::uint64_t from = std::min(number, last_);
  const std::uint64_t first = last_ - recent_.size() + 1;
  if (from + 1 < first) made.missed = first - from - 1;
  for (std::uint64_t at = std::max(from + 1, first); at <= last_; ++at) {
    const recent& one = recent_[static_cast<std::size_t>(at - first)];
    if (only.engine && *only.engine != one.engine) continue;
    if (!only.name.empty() && only.name != one.name) continue;
    made.text += one.text;
  }
  return made;
}

std::uint64_t event_log::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

std::vector<past_event> event_log::past_of(std::size_t engine, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = past_.find(key_of(engine, name));
  if (found == past_.end()) return {};
  return {found->second.events.begin(), found->second.events.end()};
}

std::optional<past_event> event_log::last_grant(std::size_t engine, const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = past_.find(key_of(engine, name));
  if (found == past_.end()) return std::nullopt;
  const auto& events = found->second.events;
  const auto grant = std::find_if(events.rbegin(), events.rend(), [](const past_event& one) {
    return one.kind == spi::event_kind::granted;
  });
  if (grant == events.rend()) return std::nullopt;
  const bool over = std::any_of(events.rbegin(), grant,
                                [&](const past_event& one) { return one.claim == grant->claim; });
  return over ? std::nullopt : std::optional(*grant);
}

event_counts event_log::counts(std::size_t engine) const {
  const std::lock_guard lock(mutex_);
  return tallies_[engine].all;
}

std::vector<event_counts> event_log::seconds(std::size_t engine) const {
  const std::lock_guard lock(mutex_);
  tally& counted = tallies_[engine];
  advance(counted, this_second());
  std::vector<event_counts> made;
  for (std::size_t ago = most_seconds - 1; ago > 0; --ago) {
    made.push_back(
        counted.by_second[(static_cast<std::size_t>(counted.second) - ago) % most_seconds]);
  }
  return made;
}

std::uint64_t event_log::kept() const {
  const std::lock_guard lock(mutex_);
  return past_events_;
}

bool event_log::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void event_log::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace holdfast::cli::serve
