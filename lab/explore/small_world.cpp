#include "explore/small_world.hpp"

#include "sim/checkers.hpp"

#include <array>

namespace holdfast::explore {

using sim::event_loop;
using sim::moment;
using sim::what;

namespace {

constexpr std::int32_t none = -2;  // neither a client nor the server
// After everybody has finished: background releases, waiters' leases, tombstones.
constexpr duration rest = std::chrono::seconds(200);
constexpr std::uint64_t rest_steps = 20'000;

sim::facts facts_of(const scenario& in, const sim::plan& plan) {
  sim::facts known = plan.known();
  const budget& all = in.troubles;
  known.calm =
      all.losses + all.stalls + all.pauses + all.freezes + all.crashes + all.outages + all.wipes ==
          0 &&
      in.dialect != sim::dialect::polling;
  return known;
}

}  // namespace

std::string to_string(const choice& one) {
  static constexpr std::array names{"event", "advance", "ask",     "release", "change", "cancel",
                                    "lose",  "stall",   "unstall", "pause",   "freeze", "resume",
                                    "crash", "cut off", "heal",    "wipe"};
  std::string text = names[static_cast<std::size_t>(one.what)];
  if (one.client != sim::nobody) text += " of client " + std::to_string(one.client);
  return text;
}

small_world::small_world(const scenario& in, sim::history::sink timeline)
    : scenario_(in),
      plan_(in.to_plan()),
      facts_(facts_of(in, plan_)),
      history_(loop_, std::move(timeline)),
      server_(loop_, history_, book_, plan_.server_clock, plan_.server, *this),
      left_(in.troubles) {
  watch_all(history_, facts_);
  const sim::random_source random(1);
  for (std::uint32_t i = 0; i < plan_.clients; ++i) {
    processes_.push_back(std::make_unique<sim::process>(plan_, loop_, history_, book_, server_,
                                                        static_cast<std::int32_t>(i),
                                                        random.branch(i), *this));
    sim::process& made = *processes_.back();
    made.mark(i);
    server_.connect(&made.link());
    made.store().met(server_.time());
    callers_.push_back(
        std::make_unique<caller>(in, in.roles[i], made, loop_, history_, book_, shared_));
  }
}

small_world::~small_world() { tear_down(); }

void small_world::spend(std::uint32_t& left) {
  --left;
  --left_.together;
}

void small_world::trouble(bool began, sim::trouble kind, std::int32_t client) {
  history_.add({.kind = began ? what::trouble_began : what::trouble_ended,
                .process = client,
                .number = static_cast<std::int64_t>(kind)});
}

// As an event of the client's own machine.
void small_world::act(std::int32_t index, void (caller::*step)()) {
  caller& acting = *callers_[static_cast<std::size_t>(index)];
  last_client_ = index;
  last_sequence_ = loop_.next_sequence();
  loop_.run(loop_.at(loop_.now(), client(index), sim::event_class::timer,
                     [&acting, step] { (acting.*step)(); }));
}

void small_world::take(const choice& one) {
  if (history_.traced()) history_.remark(std::string("-- ").append(to_string(one)));
  switch (one.what) {
    case choice::kind::run:
      moment_begins_ = false;
      ++in_this_moment_;
      last_client_ = one.client;
      last_channel_ = one.channel;
      last_sequence_ = loop_.next_sequence();
      loop_.run(one.event);
      break;
    case choice::kind::advance:
      moment_begins_ = true;
      in_this_moment_ = 0;
      last_client_ = none;
      loop_.advance(one.when);
      break;
    case choice::kind::ask:
      act(one.client, &caller::ask);
      break;
    case choice::kind::release:
      act(one.client, &caller::release);
      break;
    case choice::kind::change:
      act(one.client, &caller::change);
      break;
    case choice::kind::cancel:
      spend(left_.cancels);
      act(one.client, &caller::cancel);
      break;
    case choice::kind::lose:
      spend(left_.losses);
      trouble(true, sim::trouble::request_loss, sim::nobody);
      loop_.cancel(one.event);
      trouble(false, sim::trouble::request_loss, sim::nobody);
      break;
    case choice::kind::stall: {
      spend(left_.stalls);
      const sim::node& owner =
          one.client == sim::nobody ? static_cast<const sim::node&>(server_) : client(one.client);
      stalled_.emplace(&owner, one.channel);
      stalled_since_ = loop_.now();
      trouble(true, sim::trouble::stall, sim::nobody);
      break;
    }
    case choice::kind::unstall:
      stalled_.clear();
      trouble(false, sim::trouble::stall, sim::nobody);
      break;
    case choice::kind::pause:
      spend(left_.pauses);
      pause(one.client);
      break;
    case choice::kind::freeze:
      spend(left_.freezes);
      freeze();
      break;
    case choice::kind::resume:
      loop_.resume(client(one.client), sim::resume_order::as_it_came);
      history_.add({.kind = what::resumed, .process = one.client});
      trouble(false, sim::trouble::client_pause, one.client);
      break;
    case choice::kind::crash:
      spend(left_.crashes);
      crash(one.client);
      break;
    case choice::kind::cut_off:
      spend(left_.outages);
      cut_off(one.client);
      break;
    case choice::kind::heal:
      heal(one.client);
      break;
    case choice::kind::wipe:
      spend(left_.wipes);
      wipe();
      break;
  }
  look();
}

void small_world::pause(std::int32_t index) {
  loop_.pause(client(index));
  paused_since_ = loop_.now();
  trouble(true, sim::trouble::client_pause, index);
  history_.add({.kind = what::paused, .process = index});
}

void small_world::freeze() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (waits(i)) pause(static_cast<std::int32_t>(i));
  }
}

void small_world::crash(std::int32_t index) {
  sim::process& target = client(index);
  trouble(true, sim::trouble::client_kill, index);
  target.dead = true;
  callers_[static_cast<std::size_t>(index)]->die();
  loop_.pause(target);
  target.link().client_died(duration{0});
  // Both ends of its link have changed.
  target.mark(0);
  server_.mark(static_cast<std::uint64_t>(index));
  history_.add({.kind = what::killed, .process = index});
  trouble(false, sim::trouble::client_kill, index);
}

// What is sent from now on is lost; what is already in flight arrives.
void small_world::cut_off(std::int32_t index) {
  sim::link_conditions& now = client(index).link().conditions();
  now.request_loss = now.reply_loss = now.push_loss = 1000;
  cut_off_ = index;
  cut_off_since_ = loop_.now();
  client(index).mark(1);
  server_.mark(static_cast<std::uint64_t>(index) + 100);
  trouble(true, sim::trouble::black_hole, index);
}

void small_world::heal(std::int32_t index) {
  client(index).link().heal();
  cut_off_ = sim::nobody;
  client(index).mark(2);
  server_.mark(static_cast<std::uint64_t>(index) + 200);
  trouble(false, sim::trouble::black_hole, index);
}

void small_world::wipe() {
  trouble(true, sim::trouble::server_wipe, sim::nobody);
  server_.stop();
  server_.start(false);
  server_.mark(3);
  for (const auto& each : processes_) each->mark(3);
  trouble(false, sim::trouble::server_wipe, sim::nobody);
}

void small_world::look() {
  for (const auto& each : callers_) each->look_for_end();
  for (const auto& each : callers_) each->look_for_beginning();
}

std::uint64_t small_world::fingerprint() {
  std::uint64_t sum = 0;  // in any order
  loop_.list(events_);
  for (const event_loop::scheduled& each : events_) {
    const bool stalled = stalled_.contains({each.owner, each.channel});
    std::uint64_t one = sim::node::mixed(each.label, static_cast<std::uint64_t>(each.when.count()));
    sum += sim::node::mixed(one, stalled ? 1 : 0);
  }
  std::uint64_t hash = sim::node::mixed(sum, static_cast<std::uint64_t>(loop_.now().count()));
  hash = sim::node::mixed(hash, server_.past());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const auto& each = processes_[i];
    hash = sim::node::mixed(hash, each->dead ? 0 : each->past());
    hash = sim::node::mixed(hash, (each->paused() ? 2U : 0U) + (each->dead ? 1U : 0U));
  }
  for (const std::uint32_t each :
       {left_.losses, left_.stalls, left_.pauses, left_.freezes, left_.crashes, left_.outages,
        left_.wipes, left_.cancels, left_.together}) {
    hash = sim::node::mixed(hash, each);
  }
  hash = sim::node::mixed(hash, static_cast<std::uint64_t>(stalled_since_.count()));
  hash = sim::node::mixed(hash, static_cast<std::uint64_t>(paused_since_.count()));
  hash = sim::node::mixed(hash, static_cast<std::uint64_t>(cut_off_since_.count()));
  hash = sim::node::mixed(hash, static_cast<std::uint64_t>(cut_off_));
  return sim::node::mixed(hash, history_.order());
}

// --- the end -----------------------------------------------------------------------------------

void small_world::finish() {
  history_.add({.kind = what::healed});
  const auto run_for = [this](duration time) {
    loop_.at(loop_.now() + time, outside_, sim::event_class::timer, [] {});
    const std::uint64_t last = loop_.steps() + rest_steps;
    while (loop_.steps() < last && loop_.step(loop_.now() + time)) look();
  };
  run_for(rest);
  sim::checker& leak = *history_.find("no leak");
  for (const auto& process : processes_) {
    if (process->dead) continue;
    if (process->engine().live_claims() > 0 || loop_.pending(*process) > 0) {
      leak.fail(loop_.now(),
                "client " + std::to_string(process->index()) + " has claims or timers left");
    }
  }
  if (!server_.empty()) leak.fail(loop_.now(), "the server has claims left");
  history_.finish();
}

void small_world::tear_down() {
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    processes_[i]->link().end();
    callers_[i]->die();
  }
  for (const auto& process : processes_) {
    loop_.resume(*process, sim::resume_order::as_it_came);
    process->engine().close(duration{0}, [](const auto&) {});
    process->store().close();
  }
  const std::uint64_t last = loop_.steps() + rest_steps;
  while (loop_.steps() < last && loop_.step(loop_.now() + std::chrono::seconds(1))) {
  }
  callers_.clear();
  loop_.clear();
}

}  // namespace holdfast::explore
