#include "sim/quorum/quorum_world.hpp"

#include "sim/checkers/exclusion.hpp"
#include "sim/checkers/liveness.hpp"
#include "sim/quorum/quorum_fences.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace holdfast::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::uint64_t process_stream = 1000;
constexpr std::uint64_t strike_stream = 3000;
constexpr std::uint32_t strikes_per_thousand = 8;
constexpr std::uint64_t step_limit = 1'000'000;
// After everybody has finished: late deliveries, withdrawals, leases that run out.
constexpr duration rest = seconds(90);

// Nothing is left at a member once everybody has finished and every lease could run out.
class leftovers final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "leftovers"; }
  void see(const record&) override {}
};

// If nothing goes wrong except what one member says, nobody loses a hold.
class unfounded_loss final : public checker {
 public:
  unfounded_loss(const facts& world, bool calm) : checker(world), calm_(calm) {}
  [[nodiscard]] std::string_view name() const noexcept override { return "no unfounded loss"; }
  void see(const record& line) override {
    if (!calm_ || line.kind != what::validity_ended) return;
    fail(line.at, "hold " + std::to_string(line.hold) + " was lost although a majority had it");
  }

 private:
  const bool calm_;
};

}  // namespace

quorum_member::quorum_member(quorum_world& in, std::int32_t number, const node_clock& clock)
    : world(in),
      index(number),
      log(in.loop(), in.timeline_of(number)),
      server(in.loop(), log, book, clock, in.plan().server, *this) {}

// What happens at a member is in the timeline too, marked with its number.
history::sink quorum_world::timeline_of(std::int32_t member) const {
  if (!history_.traced()) return nullptr;
  return [this, mark = "  member " + std::to_string(member) + ": "](const std::string& line) {
    history_.remark(mark + line);
  };
}

void quorum_member::stepped(std::int32_t process, std::int32_t) { world.strike(process, index); }

quorum_world::quorum_world(quorum_plan plan, history::sink timeline)
    : plan_(std::move(plan)),
      facts_(plan_.known()),
      history_(loop_, std::move(timeline)),
      chance_(random_source(plan_.seed).branch(strike_stream)) {
  history_.watch(std::make_unique<exclusion>(facts_));
  history_.watch(std::make_unique<readers_writers>(facts_));
  history_.watch(std::make_unique<quorum_fences>(facts_));
  history_.watch(std::make_unique<liveness>(facts_));
  history_.watch(std::make_unique<leftovers>(facts_));
  history_.watch(std::make_unique<unfounded_loss>(facts_, plan_.calm()));
  for (std::uint32_t i = 0; i < plan_.members; ++i) {
    members_.push_back(std::make_unique<quorum_member>(*this, static_cast<std::int32_t>(i),
                                                       plan_.member_clocks[i]));
  }
  const random_source random(plan_.seed);
  for (std::uint32_t i = 0; i < plan_.clients; ++i) {
    processes_.push_back(std::make_unique<quorum_process>(*this, static_cast<std::int32_t>(i),
                                                          random.branch(process_stream + i)));
  }
}

quorum_world::~quorum_world() = default;

world_outcome quorum_world::run() {
  for (const auto& each : processes_) each->start();
  for (const quorum_trouble& each : plan_.troubles) schedule(each);
  for (const auto& [when, client] : plan_.lies) {
    quorum_process& to = *processes_[client];
    loop_.at(when, to, event_class::timer, [this, &to] {
      if (!to.dead()) to.hear_lie(plan_.liar);
    });
  }
  const duration one_round = plan_.longest_hold + plan_.ttl + plan_.longest_wait +
                             plan_.server.rules.longest_ttl + seconds(5);
  const auto rounds = duration::rep{plan_.clients} * plan_.rounds;
  const bool finished = run_until(plan_.healed + seconds(30) + one_round * rounds, true);
  if (finished) {
    loop_.at(loop_.now() + rest, outside_, event_class::timer, [] {});
    if (run_until(loop_.now() + rest, false)) look_for_leftovers();
  }
  history_.finish();
  if (!finished) history_.find("liveness")->fail(loop_.now(), "not everybody has finished");
  world_outcome outcome{history_.violations(), loop_.hash(), loop_.steps(), grants_, loop_.now()};
  tear_down();
  return outcome;
}

bool quorum_world::run_until(moment limit, bool until_over) {
  while (loop_.steps() < step_limit) {
    if (until_over && over()) return true;
    if (!loop_.step(limit)) return !until_over || over();
    look();
  }
  return false;
}

bool quorum_world::over() const {
  if (loop_.now() < plan_.healed || !active_.empty()) return false;
  return std::all_of(processes_.begin(), processes_.end(),
                     [](const auto& each) { return each->finished(); });
}

void quorum_world::look() {
  for (const auto& each : processes_) each->look_for_end();
  for (const auto& each : processes_) each->look_for_beginning();
}

void quorum_world::look_for_leftovers() {
  for (const auto& each : processes_) {
    if (each->dead() || each->engine().live_claims() == 0) continue;
    history_.find("leftovers")
        ->fail(loop_.now(), "client " + std::to_string(each->index()) + " has a claim left");
  }
  for (const auto& each : members_) {
    if (each->server.empty()) continue;
    history_.find("leftovers")
        ->fail(loop_.now(), "member " + std::to_string(each->index) + " has a claim left");
  }
}

void quorum_world::tear_down() {
  for (const auto& each : processes_) {
    for (std::size_t i = 0; i < members_.size(); ++i) each->link(i).end();
  }
  for (const auto& each : processes_) {
    loop_.resume(*each, resume_order::as_it_came);
    each->tear_down();
  }
  const std::uint64_t last = loop_.steps() + 10'000;
  while (loop_.steps() < last && loop_.step(loop_.now() + seconds(1))) {
  }
  loop_.clear();
}

// --- troubles ----------------------------------------------------------------------------------

void quorum_world::schedule(const quorum_trouble& each) {
  loop_.at(each.what.from, outside_, event_class::timer, [this, &each] { begin(each); });
  loop_.at(each.what.to, outside_, event_class::timer, [this, &each] { end(each); });
}

// A trouble just when a message is in flight: most harm is done at these moments.
void quorum_world::strike(std::int32_t process, std::int32_t member) {
  static constexpr std::array kinds{trouble::client_pause, trouble::cut, trouble::stall,
                                    trouble::server_pause, trouble::server_wipe};
  if (loop_.now() >= plan_.strikes_until || !chance_.chance(strikes_per_thousand)) return;
  const trouble kind = kinds[chance_.below(kinds.size())];
  if (!plan_.kinds.has(kind)) return;
  quorum_trouble made;
  made.what.kind = kind;
  made.what.from = loop_.now() + chance_.between(duration{0}, plan_.normal.longest);
  made.what.to = made.what.from;
  if (kind != trouble::cut) made.what.to += chance_.between(plan_.ttl / 10, plan_.ttl * 2);
  made.what.process = process;
  made.what.detail = chance_.next();
  made.member = member;
  struck_.push_back(made);
  active_.push_back(&struck_.back());  // the world is not over before it has ended
  schedule(struck_.back());
}

void quorum_world::begin(const quorum_trouble& each) {
  if (std::find(active_.begin(), active_.end(), &each) == active_.end()) active_.push_back(&each);
  add({.kind = what::trouble_began,
       .process = each.what.process,
       .number = static_cast<std::int64_t>(each.what.kind)});
  switch (each.what.kind) {
    case trouble::server_pause:
    case trouble::server_restart:
    case trouble::server_wipe:
      return begin_at_member(each, *members_[static_cast<std::size_t>(each.member)]);
    default:
      break;
  }
  for (const auto& at : processes_) {
    if (each.what.process >= 0 && at->index() != each.what.process) continue;
    if (!at->dead()) begin_at_client(each, *at);
  }
}

void quorum_world::begin_at_member(const quorum_trouble& each, quorum_member& at) {
  if (each.what.kind == trouble::server_pause) {
    if (++at.pauses == 1) loop_.pause(at.server);
    return;
  }
  at.wiped = at.wiped || each.what.kind == trouble::server_wipe;
  if (++at.stops == 1) at.server.stop();
}

void quorum_world::begin_at_client(const quorum_trouble& each, quorum_process& at) {
  const duration some(static_cast<duration::rep>(each.what.detail % 1000) * plan_.ttl.count() /
                      500);
  if (each.what.kind == trouble::client_pause) {
    if (++at.pauses > 1) return;
    loop_.pause(at);
    return add({.kind = what::paused, .process = at.index()});
  }
  if (each.what.kind == trouble::client_kill) return kill(at);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (each.member >= 0 && i != static_cast<std::size_t>(each.member)) continue;
    if (each.what.kind == trouble::stall) {
      const duration late = each.what.detail % 3 == 0 ? seconds(each.what.detail % 50) : some;
      at.link(i).stall(plan_.store.reconnects_on_silence ? loop_.now() + late : each.what.to);
    } else if (each.what.kind == trouble::cut) {
      at.link(i).cut(each.what.detail % 3 != 0,
                     each.what.detail % 5 == 0 ? loop_.now() + some : moment{});
    } else {
      bend(at, i);
    }
  }
}

void quorum_world::kill(quorum_process& at) {
  if (dead_ + 1 >= plan_.clients) return;  // at least one is left to finish
  ++dead_;
  at.die();
  loop_.pause(at);
  for (std::size_t i = 0; i < members_.size(); ++i) at.link(i).client_died(duration{0});
  add({.kind = what::killed, .process = at.index()});
}

void quorum_world::end(const quorum_trouble& each) {
  std::erase(active_, &each);
  if (each.what.kind == trouble::server_pause || each.what.kind == trouble::server_restart ||
      each.what.kind == trouble::server_wipe) {
    end_at_member(each, *members_[static_cast<std::size_t>(each.member)]);
  }
  for (const auto& at : processes_) {
    if (each.what.process >= 0 && at->index() != each.what.process) continue;
    if (at->dead()) continue;
    if (each.what.kind == trouble::client_pause) {
      if (--at->pauses > 0) continue;
      loop_.resume(*at, static_cast<resume_order>(each.what.detail % 3));
      add({.kind = what::resumed, .process = at->index()});
      continue;
    }
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (each.what.kind == trouble::stall) at->link(i).unstick();
      bend(*at, i);
    }
  }
  add({.kind = what::trouble_ended,
       .process = each.what.process,
       .number = static_cast<std::int64_t>(each.what.kind)});
}

void quorum_world::end_at_member(const quorum_trouble& each, quorum_member& at) {
  if (each.what.kind == trouble::server_pause) {
    if (--at.pauses == 0) loop_.resume(at.server, resume_order::as_it_came);
  } else if (--at.stops == 0) {
    at.server.start(!std::exchange(at.wiped, false));
  }
}

// The worst trouble now between this client and this member.
void quorum_world::bend(quorum_process& at, std::size_t member) {
  at.link(member).heal();
  link_conditions& now = at.link(member).conditions();
  for (const quorum_trouble* each : active_) {
    if (each->what.process >= 0 && each->what.process != at.index()) continue;
    if (each->member >= 0 && static_cast<std::size_t>(each->member) != member) continue;
    const std::uint64_t detail = each->what.detail;
    const std::uint32_t often = detail % 3 == 0 ? 900 : detail % 3 == 1 ? 400 : 100;
    switch (each->what.kind) {
      case trouble::delay:
        now.longest = std::max(now.longest, duration(static_cast<duration::rep>(detail % 1000) *
                                                     plan_.ttl.count() / 1000));
        break;
      case trouble::request_loss:
        now.request_loss = std::max(now.request_loss, often);
        break;
      case trouble::reply_loss:
        now.reply_loss = std::max(now.reply_loss, often);
        break;
      case trouble::black_hole:
        now.request_loss = 1000;
        now.reply_loss = 1000;
        break;
      default:
        break;
    }
  }
}

world_outcome run_quorum_seed(std::uint64_t seed, history::sink timeline) {
  quorum_world made(draw_quorum_plan(seed), std::move(timeline));
  return made.run();
}

}  // namespace holdfast::sim
