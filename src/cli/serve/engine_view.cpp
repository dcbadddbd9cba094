#include "cli/serve/engine_view.hpp"

#include "cli/inspection.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli::serve {

namespace {

constexpr duration tick = std::chrono::milliseconds(250);
constexpr int list_share = 10;
constexpr duration somebody_looks_for = std::chrono::seconds(10);
constexpr duration listing_within = std::chrono::seconds(6);
// Holders whose grant we did not see (they were there before us) are looked up, this many per
// round.
constexpr std::size_t most_unknown_asked = 25;
constexpr std::size_t most_kept_details = 1024;
constexpr duration details_are_fresh = std::chrono::milliseconds(500);
constexpr duration ping_every = std::chrono::seconds(2);
constexpr duration ping_within = std::chrono::seconds(3);
constexpr duration probe_every = std::chrono::seconds(60);
constexpr duration reopen_every = std::chrono::seconds(2);

wall_time ago(duration span) {
  return std::chrono::system_clock::now() - std::chrono::duration_cast<wall_time::duration>(span);
}

std::string text_of(const std::string& engine, const spi::resource_summary& one,
                    const known_holder& by) {
  json::value made{
      {"engine", engine}, {"name", one.name}, {"holders", one.holders}, {"waiters", one.waiters}};
  if (by.since != wall_time{}) made["since"] = rfc3339(by.since);
  if (!by.payload.empty()) made["payload"] = by.payload;
  if (one.blocked_for) made["blocked_ms"] = json::milliseconds(one.blocked_for);
  if (cannot_be_read(one)) made["damaged"] = true;
  std::string text = json::line(made);
  text.pop_back();
  return text;
}

}  // namespace

engine_view::engine_view(std::string id, std::size_t number, address to, credentials with,
                         event_log& log, log_level level)
    : id_(std::move(id)),
      number_(number),
      to_(std::move(to)),
      with_(std::move(with)),
      level_(level),
      log_(log) {
  status_.trouble = "not reached yet";
  thread_ = std::jthread([this] { work(); });
}

engine_view::~engine_view() { stop(); }

void engine_view::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void engine_view::look() {
  const std::lock_guard lock(mutex_);
  looked_ = clock::now();
}

std::optional<client> engine_view::connected() const {
  const std::lock_guard lock(mutex_);
  return client_;
}

engine_status engine_view::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

time_point engine_view::want_listing(duration no_older_than) {
  const std::lock_guard lock(mutex_);
  // A client that keeps asking does not make an engine list all the time.
  if (status_.last) no_older_than = std::max(no_older_than, status_.last->took * list_share);
  const time_point begun = clock::now() - no_older_than;
  if (may_list()) wanted_ = std::max(wanted_, begun);
  changed_.notify_all();
  return begun;
}

engine_status engine_view::status(time_point begun, time_point by) {
  std::unique_lock lock(mutex_);
  // It may have been down when the listing was asked for.
  if (may_list()) wanted_ = std::max(wanted_, begun);
  changed_.notify_all();
  changed_.wait_until(lock, by, [&] { return stopped_ || !may_list() || listed_ >= begun; });
  return status_;
}

std::vector<engine_status> fresh_status(const std::vector<engine_view*>& engines,
                                        duration no_older_than) {
  std::vector<time_point> begun;
  for (engine_view* const one : engines) begun.push_back(one->want_listing(no_older_than));
  const time_point by = clock::now() + listing_within;
  std::vector<engine_status> made;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    made.push_back(engines[i]->status(begun[i], by));
  }
  return made;
}

result<spi::resource_state> engine_view::inspect(const std::string& name) {
  std::optional<client> client;
  {
    std::unique_lock lock(mutex_);
    // Just started: soon it is known whether the engine answers.
    changed_.wait_for(lock, ping_within, [this] { return stopped_ || contacted_; });
    const auto found = details_.find(name);
    if (found != details_.end() && found->second.at > clock::now() - details_are_fresh) {
      return found->second.state;
    }
    if (!client_ || !status_.up) return failure(errc::unavailable, status_.trouble);
    client = client_;
  }
  auto state = client->inspect(name);
  if (!state) return state;
  const std::lock_guard lock(mutex_);
  if (details_.size() >= most_kept_details) details_.clear();
  details_[name] = {*state, clock::now()};
  if (!state->holders.empty() && state->holders.front().held_for) {
    const spi::holder& first = state->holders.front();
    const auto known = known_.find(name);
    if (known != known_.end()) known->second = {first.claim, ago(*first.held_for), first.payload};
  }
  return state;
}

result<std::vector<spi::holder>> engine_view::revoke(const std::string& name,
                                                     const std::string& claim) {
  auto client = connected();
  if (!client) return failure(errc::unavailable, "it is not open");
  auto taken = client->revoke(name, spi::revocation::safe, claim);
  const std::lock_guard lock(mutex_);
  details_.erase(name);
  return taken;
}

// One thing at a time, each with a deadline of its own; so stop() waits for one of them at most.
void engine_view::work() {
  while (true) {
    bool list = false;
    bool contact = false;
    bool examine = false;
    bool open = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, tick,
                        [&] { return stopped_ || (status_.lists && wanted_ > listed_); });
      if (stopped_) break;
      const time_point now = clock::now();
      open = client_.has_value();
      if (!open && asked_ > now - reopen_every) {
        listed_ = now;  // requests that wait for a listing get none
        continue;
      }
      list = open && wants_listing(now);
      contact = open && !list && asked_ < now - ping_every;
      examine = open && status_.up && probed_ < now - probe_every;
    }
    if (!open) {
      open_engine();
      continue;
    }
    if (!subscription_) subscribe();
    if (list) list_names();
    if (contact) ping();
    if (examine) probe();
    if (list) ask_for_unknown();
  }
  subscription_.reset();
  std::optional<client> last;
  const std::lock_guard lock(mutex_);
  last.swap(client_);
}

bool engine_view::may_list() const { return status_.lists && (status_.up || !contacted_); }

bool engine_view::wants_listing(time_point now) const {
  if (!status_.lists) return false;
  if (wanted_ > listed_) return true;
  return looked_ > now - somebody_looks_for && now >= list_after_;
}

void engine_view::open_engine() {
  auto opened = connect(to_, with_);
  if (!opened) {
    const complaint& why = opened.error();
    return down(why.answer.empty() ? why.text : why.answer);
  }
  const std::lock_guard lock(mutex_);
  client_ = std::move(*opened);
  status_.lists = client_->caps().supports_listing;
  asked_ = time_point::min();  // at once
}

// Survives an outage of the engine; what happens meanwhile is not seen.
void engine_view::subscribe() {
  const auto client = connected();
  if (!client->caps().supports_listing) return;
  auto made = client->observe("", [this](const spi::store_event& event) {
    if (event.kind != spi::event_kind::renewed) log_.note(number_, event);
  });
  if (made) {
    subscription_ = std::move(*made);
    return;
  }
  const std::lock_guard lock(mutex_);
  status_.trouble = told(made.error(), "observe");
}

void engine_view::list_names() {
  const auto client = connected();
  const time_point began = clock::now();
  auto all = client->list();
  const time_point ended = clock::now();
  std::optional<error> problem;
  if (!all) problem = all.error();
  answered(problem, "list");
  auto made = std::make_shared<listing>();
  if (all) {
    made->names = all->size();
    for (const spi::resource_summary& one : *all) {
      made->held += one.holders;
      made->waiting += one.waiters;
      made->blocked += one.blocked_for ? 1 : 0;
    }
    std::sort(all->begin(), all->end(),
              [](const auto& left, const auto& right) { return left.name < right.name; });
    if (all->size() > most_names) all->resize(most_names);
    made->at = std::chrono::system_clock::now();
    made->took = ended - began;
    fill_in(*made, *all);
  }
  const std::lock_guard lock(mutex_);
  made->number = ++lists_;
  listed_ = began;
  list_after_ =
      ended + std::max<duration>(list_every - (ended - began), (ended - began) * list_share);
  if (problem == std::nullopt) status_.last = std::move(made);
  if (problem && *problem == errc::unsupported) status_.lists = false;
  changed_.notify_all();
}

// Since when, and by whom: from the grants that were seen, and from inspect's answers.
known_holder engine_view::holder_of(const std::string& name, const known_holders& before) const {
  if (auto seen = log_.last_grant(number_, name)) {
    return {std::move(seen->claim), seen->at, std::move(seen->payload)};
  }
  const auto found = before.find(name);
  if (found == before.end()) return {};
  // Its grant was not seen; if its end was, it has another holder now, whose grant will follow.
  const auto past = log_.past_of(number_, name);
  const bool over = std::any_of(past.begin(), past.end(), [&](const past_event& event) {
    return event.claim == found->second.claim && event.at > found->second.since;
  });
  return over ? known_holder{} : found->second;
}

void engine_view::fill_in(listing& made, const std::vector<spi::resource_summary>& all) {
  known_holders before;
  {
    const std::lock_guard lock(mutex_);
    before.swap(known_);
  }
  known_holders now;
  now.reserve(all.size());
  made.rows.reserve(all.size());
  for (const spi::resource_summary& one : all) {
    const bool held = one.holders > 0;
    known_holder by = held ? holder_of(one.name, before) : known_holder{};
    made.rows.push_back({one.name, text_of(id_, one, by)});
    if (held) now[one.name] = std::move(by);
  }
  const std::lock_guard lock(mutex_);
  known_ = std::move(now);
}

void engine_view::ask_for_unknown() {
  std::vector<std::string> unknown;
  {
    const std::lock_guard lock(mutex_);
    if (!status_.up || looked_ < clock::now() - somebody_looks_for) return;
    for (const auto& [name, holder] : known_) {
      if (holder.claim.empty()) unknown.push_back(name);
      if (unknown.size() == most_unknown_asked) break;
    }
  }
  for (const std::string& name : unknown) {
    const auto state = inspect(name);
    if (!state) return;
    // A foreign holder reveals nothing: not looked up again while it is listed.
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(name);
    if (known != known_.end() && known->second.claim.empty()) known->second.claim = "?";
    if (stopped_) return;
  }
}

void engine_view::ping() {
  const auto client = connected();
  const auto fine = client->ping(ping_within);
  answered(fine ? std::nullopt : std::optional(fine.error()), "ping");
}

void engine_view::probe() {
  const auto client = connected();
  auto found = client->probe();
  const std::lock_guard lock(mutex_);
  probed_ = clock::now();
  if (found) status_.checks = std::move(*found);
}

void engine_view::answered(const std::optional<error>& problem, std::string_view action) {
  if (problem && *problem != errc::unsupported) return down(told(*problem, action));
  bool back = false;
  {
    const std::lock_guard lock(mutex_);
    asked_ = clock::now();
    if (!status_.up) probed_ = time_point::min();  // it may be a different one when it comes back
    back = was_down_;
    was_down_ = false;
    contacted_ = true;
    status_.up = true;
    status_.trouble = problem ? told(*problem, action) : std::string();
  }
  changed_.notify_all();
  if (back && level_ >= log_level::warn) tell("engine " + id_ + " answers again");
}

void engine_view::down(const std::string& why) {
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    asked_ = clock::now();
    news = !was_down_;
    was_down_ = true;
    contacted_ = true;
    status_.up = false;
    status_.trouble = why;
    status_.last.reset();
    status_.checks.clear();
    details_.clear();
  }
  changed_.notify_all();
  if (news && level_ >= log_level::warn) tell("engine " + id_ + " does not answer (" + why + ")");
}

}  // namespace holdfast::cli::serve
