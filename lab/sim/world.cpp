#include "sim/world.hpp"

#include "sim/checkers.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Streams of chance, apart from those of the plan.
constexpr std::uint64_t process_stream = 1000;
constexpr std::uint64_t actor_stream = 2000;
constexpr std::uint64_t actors_per_process = 100;
constexpr std::uint64_t strike_stream = 3000;
// The share of steps at which a trouble strikes, where one can.
constexpr std::uint32_t strikes_per_thousand = 15;
// More would be a world that never ends.
constexpr std::uint64_t step_limit = 2'000'000;
// After everybody has finished: late deliveries, background releases.
constexpr duration rest = seconds(400);

}  // namespace

world::world(sim::plan plan, history::sink timeline)
    : plan_(std::move(plan)),
      facts_(plan_.known()),
      history_(loop_, std::move(timeline)),
      server_(loop_, history_, book_, plan_.server_clock, plan_.server, *this),
      chance_(random_source(plan_.seed).branch(strike_stream)) {
  watch_all(history_, facts_);
  const random_source random(plan_.seed);
  for (std::uint32_t i = 0; i < plan_.clients; ++i) {
    processes_.push_back(std::make_unique<process>(plan_, loop_, history_, book_, server_,
                                                   static_cast<std::int32_t>(i),
                                                   random.branch(process_stream + i), *this));
    process& made = *processes_.back();
    server_.connect(&made.link());
    made.store().met(server_.time());
    for (std::uint32_t j = 0; j < plan_.actors; ++j) {
      made.actors.push_back(
          std::make_shared<actor>(*this, made, static_cast<std::int32_t>(j),
                                  random.branch(actor_stream + i * actors_per_process + j)));
    }
  }
}

world::~world() = default;

world_outcome world::run() {
  for (const auto& process : processes_) {
    for (const auto& each : process->actors) each->start();
  }
  for (const disturbance& each : plan_.disturbances) {
    loop_.at(each.from, outside_, event_class::timer, [this, &each] { begin(each); });
    loop_.at(each.to, outside_, event_class::timer, [this, &each] { end(each); });
  }
  const duration one_round = plan_.longest_hold + plan_.ttl + plan_.lock_delay +
                             plan_.server.rules.offer + plan_.longest_wait + facts_.recovery;
  const auto rounds = static_cast<duration::rep>(plan_.clients) * plan_.actors * plan_.rounds;
  const bool finished = run_until(plan_.healed + seconds(30) + one_round * rounds, true);
  if (finished) come_to_rest();
  history_.finish();
  world_outcome outcome{history_.violations(), loop_.hash(), loop_.steps(),
                        static_cast<std::uint32_t>(holds_ - adoptions_), loop_.now()};
  tear_down();
  return outcome;
}

bool world::run_until(moment limit, bool until_over) {
  while (loop_.steps() < step_limit) {
    if (until_over && over()) return true;
    if (!loop_.step(limit)) return !until_over || over();
    look();
  }
  return false;
}

bool world::over() const {
  if (loop_.now() < plan_.healed || !active_.empty() || tokens_under_way_ > 0) return false;
  return std::all_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return process->dead || std::all_of(process->actors.begin(), process->actors.end(),
                                        [](const auto& each) { return each->finished(); });
  });
}

void world::pass_on(const actor::token& detached, random_source& random) {
  const std::int64_t adopters = random.between(1, 2);
  for (std::int64_t i = 0; i < adopters; ++i) {
    process& whose = *processes_[random.below(processes_.size())];
    const bool in_time = random.chance(700);
    const moment when =
        loop_.now() + random.between(duration{0}, in_time ? plan_.ttl / 4 : plan_.ttl * 2);
    const random_source own = random.branch(static_cast<std::uint64_t>(i) + 1);
    ++tokens_under_way_;
    loop_.at(when, outside_, event_class::timer, [this, &whose, detached, own] {
      --tokens_under_way_;
      if (whose.dead || whose.closed) return;
      whose.actors.push_back(std::make_shared<actor>(
          *this, whose, static_cast<std::int32_t>(whose.actors.size()), own));
      whose.actors.back()->start_adopting(detached);
    });
  }
}

// Validity ends by the mere passing of time: ends are recorded before beginnings.
void world::look() {
  for (const auto& process : processes_) {
    for (const auto& each : process->actors) each->look_for_end();
  }
  for (const auto& process : processes_) {
    for (const auto& each : process->actors) each->look_for_beginning();
  }
}

void world::stepped(std::int32_t process, std::int32_t acquisition) {
  for (const auto& each : processes_[static_cast<std::size_t>(process)]->actors) {
    each->stepped(acquisition);
  }
  if (loop_.now() < plan_.strikes_until) strike(process);
}

// A trouble just when a message is in flight: most harm is done at these moments, and chance alone
// seldom finds them.
void world::strike(std::int32_t process) {
  static constexpr std::array kinds{trouble::client_pause, trouble::cut, trouble::stall,
                                    trouble::server_pause};
  if (!chance_.chance(strikes_per_thousand)) return;
  const trouble kind = kinds[chance_.below(kinds.size())];
  if (!plan_.troubles.has(kind)) return;
  disturbance made;
  made.kind = kind;
  made.from = loop_.now() + chance_.between(duration{0}, plan_.normal.longest);
  made.to = made.from;
  if (kind != trouble::cut) made.to += chance_.between(plan_.ttl / 10, plan_.ttl * 2);
  made.process = process;
  made.detail = chance_.next();
  struck_.push_back(made);
  const disturbance& each = struck_.back();
  // Active from now on: the world is not over before it has ended.
  active_.push_back(&each);
  loop_.at(each.from, outside_, event_class::timer, [this, &each] { begin(each); });
  loop_.at(each.to, outside_, event_class::timer, [this, &each] { end(each); });
}

// --- troubles ----------------------------------------------------------------------------------

void world::begin(const disturbance& each) {
  if (std::find(active_.begin(), active_.end(), &each) == active_.end()) active_.push_back(&each);
  record({.kind = what::trouble_began,
          .process = each.process,
          .number = static_cast<std::int64_t>(each.kind)});
  switch (each.kind) {
    case trouble::server_pause:
      return pause_server();
    case trouble::server_restart:
    case trouble::server_wipe:
      if (++server_stops_ == 1) server_.stop();
      return;
    case trouble::clock_jump: {
      const auto range = static_cast<std::uint64_t>((plan_.ttl * 2).count());
      const duration by(static_cast<duration::rep>(each.detail % range));
      server_.jump((each.detail >> 63U) != 0 ? by : -by);
      return;
    }
    default:
      break;
  }
  for (const auto& process : processes_) {
    if (each.process >= 0 && process->index() != each.process) continue;
    // At least one client is left to finish.
    const bool ends_it = each.kind == trouble::client_kill || each.kind == trouble::client_close;
    if (process->dead || (ends_it && (each.process < 0 || plan_.clients < 2))) continue;
    begin_at(each, *process);
  }
}

void world::begin_at(const disturbance& each, process& target) {
  const moment now = loop_.now();
  const duration some(static_cast<duration::rep>(each.detail % 1000) * plan_.ttl.count() / 500);
  switch (each.kind) {
    case trouble::stall: {
      // Long after everybody has forgotten it, or just too late for its deadline.
      const duration late = each.detail % 3 == 0 ? seconds(each.detail % 90) : some;
      target.link().stall(plan_.store.reconnects_on_silence ? now + late : each.to);
      return;
    }
    case trouble::cut:
      target.link().cut(each.detail % 3 != 0, each.detail % 5 == 0 ? now + some : moment{});
      return;
    case trouble::subscription_cut:
      target.link().cut_subscription(each.detail % 2 == 0 ? duration{0} : some);
      return;
    case trouble::client_pause:
      if (++target.pauses > 1) return;
      loop_.pause(target);
      record({.kind = what::paused, .process = target.index()});
      return;
    case trouble::client_kill:
      return kill(target, each.detail);
    case trouble::client_close:
      return close(target, some);
    default:
      return bend(target);
  }
}

void world::end(const disturbance& each) {
  std::erase(active_, &each);
  if (each.kind == trouble::server_pause) resume_server();
  if (each.kind == trouble::server_restart || each.kind == trouble::server_wipe) {
    if (--server_stops_ == 0) server_.start(each.kind == trouble::server_restart);
  }
  for (const auto& process : processes_) {
    if (each.process >= 0 && process->index() != each.process) continue;
    if (!process->dead) end_at(each, *process);
  }
  // What was sent last may be in flight for as long as the trouble delays it.
  const duration under_way = each.kind == trouble::delay ? longest_delay(each) : duration{0};
  loop_.at(loop_.now() + under_way, outside_, event_class::timer, [this, &each] {
    record({.kind = what::trouble_ended,
            .process = each.process,
            .number = static_cast<std::int64_t>(each.kind)});
  });
}

duration world::longest_delay(const disturbance& each) const {
  return duration(static_cast<duration::rep>(each.detail % 1000) * plan_.ttl.count() / 1000);
}

void world::end_at(const disturbance& each, process& target) {
  switch (each.kind) {
    case trouble::stall:
      return target.link().unstick();
    case trouble::client_pause:
      if (--target.pauses > 0) return;
      loop_.resume(target, static_cast<resume_order>(each.detail % 3));
      record({.kind = what::resumed, .process = target.index()});
      return;
    default:
      return bend(target);
  }
}

// The worst trouble at this moment.
void world::bend(process& target) {
  target.link().heal();
  link_conditions& now = target.link().conditions();
  for (const disturbance* each : active_) {
    if (each->process >= 0 && each->process != target.index()) continue;
    const std::uint32_t often = each->detail % 3 == 0 ? 900 : each->detail % 3 == 1 ? 400 : 100;
    switch (each->kind) {
      case trouble::delay:
        now.longest = std::max(now.longest, longest_delay(*each));
        break;
      case trouble::request_loss:
        now.request_loss = std::max(now.request_loss, often);
        break;
      case trouble::reply_loss:
        now.reply_loss = std::max(now.reply_loss, often);
        break;
      case trouble::push_loss:
        now.push_loss = std::max(now.push_loss, often);
        break;
      case trouble::black_hole:
        now.request_loss = 1000;
        now.reply_loss = 1000;
        now.push_loss = 1000;
        break;
      default:
        break;
    }
  }
}

void world::kill(process& target, std::uint64_t detail) {
  target.dead = true;
  for (const auto& each : target.actors) each->die();
  loop_.pause(target);
  // A process that dies closes its connections; a machine that dies does not.
  target.link().client_died(detail % 2 == 0 ? duration{0} : plan_.ttl * 2);
  record({.kind = what::killed, .process = target.index()});
}

void world::close(process& target, duration limit) {
  if (target.closed) return;
  target.closed = true;
  target.closing = true;
  record({.kind = what::closed, .process = target.index()});
  target.engine().close(limit, [&target](const auto&) { target.closing = false; });
}

void world::pause_server() {
  if (++server_pauses_ == 1) loop_.pause(server_);
}

void world::resume_server() {
  if (--server_pauses_ == 0) loop_.resume(server_, resume_order::as_it_came);
}

// --- the end -----------------------------------------------------------------------------------

void world::come_to_rest() {
  record({.kind = what::healed});
  for (const auto& process : processes_) {
    if (!process->dead && plan_.closes) close(*process, seconds(2));
  }
  run_until(loop_.now() + rest, false);
  // Whatever a live client still does now, it would do forever.
  for (const auto& process : processes_) {
    if (process->dead || loop_.pending(*process) == 0) continue;
    history_.find("no leak")->fail(
        loop_.now(), "client " + std::to_string(process->index()) + " has timers left");
  }
  // What the server still has of dead clients ends by itself.
  loop_.at(loop_.now() + plan_.ttl * 3 + plan_.lock_delay + plan_.limit.waiter_lease * 2, outside_,
           event_class::timer, [] {});
  run_until(loop_.now() + rest, false);
  checker& leak = *history_.find("no leak");
  for (const auto& process : processes_) {
    if (process->dead) continue;
    const std::string who = "client " + std::to_string(process->index());
    if (process->engine().live_claims() > 0) leak.fail(loop_.now(), who + " has claims left");
    if (process->closing) {
      history_.find("liveness")->fail(loop_.now(), "closing " + who + " was never answered");
    }
  }
  if (!server_.empty()) leak.fail(loop_.now(), "the server has claims left");
}

// Whatever is left ends without any notification: dead machines are resumed to be torn down.
void world::tear_down() {
  for (const auto& process : processes_) {
    process->link().end();
    for (const auto& each : process->actors) each->die();
  }
  for (const auto& process : processes_) {
    loop_.resume(*process, resume_order::as_it_came);
    process->engine().close(duration{0}, [](const auto&) {});
    process->store().close();
    process->actors.clear();
  }
  const std::uint64_t last = loop_.steps() + 10'000;
  while (loop_.steps() < last && loop_.step(loop_.now() + seconds(1))) {
  }
  loop_.clear();
}

}  // namespace holdfast::sim
