#include "sim/plan.hpp"

#include <algorithm>
#include <iterator>

namespace holdfast::sim {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Each part of a plan draws from its own random stream; the numbers name them.
enum class part : std::uint8_t {
  size,
  resources,
  troubles,
  tuning,
  network,
  clocks,
  disturbances,
  window,
  moves
};

random_source stream(std::uint64_t seed, part of) {
  return random_source(seed).branch(static_cast<std::uint64_t>(of));
}

void draw_size(plan& made, const restrictions& at_most) {
  auto random = stream(made.seed, part::size);
  made.clients = static_cast<std::uint32_t>(random.between(2, 4));
  made.actors = static_cast<std::uint32_t>(random.between(1, 3));
  made.rounds = static_cast<std::uint32_t>(random.between(1, 4));
  if (made.clients * made.actors > 6) made.rounds = std::min(made.rounds, 2U);
  made.clients = std::min(made.clients, at_most.clients);
  made.actors = std::min(made.actors, at_most.actors);
  made.rounds = std::min(made.rounds, at_most.rounds);
}

void draw_resources(plan& made, const restrictions& at_most) {
  auto random = stream(made.seed, part::resources);
  const std::uint64_t count = random.chance(750) ? 1 : 2;
  for (std::uint64_t i = 0; i < count; ++i) {
    resource_plan each;
    const std::uint64_t kind = random.below(100);
    if (kind < 50) {
      each.kind = resource_kind::mutex;
    } else if (kind < 75) {
      each.kind = resource_kind::shared;
    } else if (kind < 92) {
      each.kind = resource_kind::semaphore;
      each.max = static_cast<std::uint32_t>(random.between(1, 3));
    } else {
      each.kind = resource_kind::latch;
    }
    const std::uint64_t fairness = random.below(3);
    each.fair = fairness == 0 ? 0 : fairness == 1 ? 1000 : 500;
    made.resources.push_back(each);
  }
  if (made.resources.size() > at_most.resources) made.resources.resize(at_most.resources);
}

void draw_troubles(plan& made, const restrictions& at_most) {
  auto random = stream(made.seed, part::troubles);
  const std::uint32_t mood =
      random.chance(120) ? 0 : static_cast<std::uint32_t>(random.between(80, 400));
  for (std::size_t kind = 0; kind < trouble_kinds; ++kind) {
    const auto each = static_cast<trouble>(kind);
    std::uint32_t likely = mood;
    switch (each) {
      case trouble::server_wipe:
      case trouble::clock_jump:
        likely = mood / 6;
        break;
      case trouble::client_close:
        likely = mood / 2;
        break;
      case trouble::clock_rates:
      case trouble::push_disorder:
        likely = 400;
        break;
      case trouble::cancel:
        likely = 300;
        break;
      default:
        break;
    }
    if (random.chance(likely)) made.troubles.add(each);
  }
  made.troubles = made.troubles.within(at_most.troubles);
}

// In every third world so small that attempts wait for one another.
void draw_window(plan& made) {
  auto random = stream(made.seed, part::window);
  if (!random.chance(333)) return;
  made.limit.window_first = static_cast<std::size_t>(random.between(1, 3));
  made.limit.window_least = 1;
}

// In every fifth world leases move between processes.
void draw_moves(plan& made) {
  auto random = stream(made.seed, part::moves);
  if (random.chance(200)) made.moves = 500;
}

void draw_tuning(plan& made) {
  auto random = stream(made.seed, part::tuning);
  static constexpr std::int64_t ttls[] = {100, 150, 300, 600, 1000, 2000, 5000};
  made.ttl = milliseconds(ttls[random.below(std::size(ttls))]);
  const bool long_holds = random.chance(350);
  made.longest_hold = long_holds ? made.ttl * 2 : made.ttl / random.between(4, 100);
  made.longest_think = made.ttl / random.between(4, 100);
  made.longest_wait = made.ttl * random.between(1, 4);
  if (random.chance(150)) made.lock_delay = made.ttl / random.between(1, 10);
  made.forever = static_cast<std::uint32_t>(random.between(200, 900));
  made.unrenewed = random.chance(300) ? 400 : 0;
  made.cancels = made.troubles.has(trouble::cancel) ? 250 : 0;
  made.changes = random.chance(600) ? 500 : 0;
  made.named = random.chance(500) ? 1000 : 300;
  made.hand_over_locally = random.chance(700);
  made.closes = random.chance(300);

  core::limits& limit = made.limit;
  limit.recheck = milliseconds(random.between(30, 1000));
  limit.poll_first = milliseconds(random.between(2, 20));
  limit.renewal_slack = milliseconds(random.between(0, 200));
  limit.last_try = milliseconds(random.between(10, 100));
  limit.local_hand_over = milliseconds(random.between(1, 50));
  limit.local_hand_overs = static_cast<std::uint32_t>(random.between(0, 4));
  limit.waiter_lease = limit.recheck * 3 + made.ttl + milliseconds(random.between(100, 1000));
  draw_window(made);
  draw_moves(made);
  made.retry.first = milliseconds(random.between(2, 50));
  made.retry.limit = milliseconds(random.between(50, 400));

  memory::rules& rules = made.server.rules;
  rules.offer = milliseconds(random.between(60, 2000));
  rules.waiter_lease = limit.waiter_lease;
  rules.hand_over_after = microseconds(random.between(0, 2000));
  rules.stagger = milliseconds(random.between(1, 20));
  made.server.timers = random.chance(500);
  // Long enough for callers that think before they come back, in every second world.
  limit.turn = random.chance(500) ? made.longest_think : microseconds(random.between(0, 2000));
  limit.keep_seldom = static_cast<std::uint32_t>(random.between(1, 4));
  limit.keep = random.chance(500) ? limit.turn : microseconds(random.between(0, 200));
}

void draw_network(plan& made) {
  auto random = stream(made.seed, part::network);
  link_conditions& normal = made.normal;
  normal.shortest = microseconds(random.between(10, 200));
  normal.longest = normal.shortest + microseconds(random.between(1, 2000));
  normal.pushes_in_order = !made.troubles.has(trouble::push_disorder);
  made.late.timer = microseconds(random.between(0, 1000));
  made.late.notice = microseconds(random.between(0, 2000));

  const std::uint64_t kind = random.below(100);
  made.server.dialect = kind < 80   ? dialect::queueing
                        : kind < 92 ? dialect::watching
                                    : dialect::polling;
  made.store.dialect = made.server.dialect;
  made.store.always_fair = made.server.dialect == dialect::queueing && random.chance(50);
  made.store.fails_fast = random.chance(500);
  made.store.sends_again = random.chance(300);
  made.store.reconnects_on_silence = random.chance(700);
  if (made.server.dialect == dialect::queueing) return;
  for (resource_plan& each : made.resources) each.fair = 0;
}

void draw_clocks(plan& made) {
  auto random = stream(made.seed, part::clocks);
  // Half of 0.9 % each way: no two differ by more.
  constexpr std::int64_t fastest = 4500;
  const auto draw = [&] {
    const duration start = random.between(seconds(1), seconds(1'000'000));
    if (!made.troubles.has(trouble::clock_rates)) return node_clock(start, 0);
    const std::int64_t rate = random.chance(700) ? (random.chance(500) ? fastest : -fastest)
                                                 : random.between(-fastest, fastest);
    return node_clock(start, rate);
  };
  made.server_clock = draw();
  for (std::uint32_t i = 0; i < made.clients; ++i) made.client_clocks.push_back(draw());
}

// Troubles without a duration.
bool instant(trouble kind) {
  return kind == trouble::cut || kind == trouble::client_kill || kind == trouble::client_close ||
         kind == trouble::clock_jump;
}

void draw_disturbances(plan& made, const restrictions& at_most) {
  const auto random = stream(made.seed, part::disturbances);
  const duration horizon = made.ttl * 4 + seconds(1);
  for (std::size_t kind = 0; kind < trouble_kinds; ++kind) {
    const auto each = static_cast<trouble>(kind);
    auto own = random.branch(kind);
    if (!made.troubles.has(each) || each == trouble::clock_rates || each == trouble::cancel ||
        each == trouble::push_disorder) {
      continue;
    }
    const std::int64_t times = each == trouble::client_kill || each == trouble::client_close ||
                                       each == trouble::server_wipe
                                   ? 1
                                   : own.between(1, 3);
    for (std::int64_t i = 0; i < times; ++i) {
      disturbance one;
      one.kind = each;
      one.from = own.between(duration{0}, horizon);
      const duration longest = own.chance(500) ? made.ttl * 2 : made.ttl / 4;
      one.to = instant(each) ? one.from : one.from + own.between(milliseconds(1), longest);
      one.process = own.chance(700) ? static_cast<std::int32_t>(own.below(made.clients)) : -1;
      one.detail = own.next();
      made.disturbances.push_back(one);
    }
  }
  std::stable_sort(made.disturbances.begin(), made.disturbances.end(),
                   [](const auto& left, const auto& right) { return left.from < right.from; });
  if (made.disturbances.size() > at_most.disturbances) {
    made.disturbances.resize(at_most.disturbances);
  }
  for (const disturbance& each : made.disturbances) made.healed = std::max(made.healed, each.to);
  if (at_most.disturbances > 0) made.strikes_until = horizon;
}

}  // namespace

plan draw_plan(std::uint64_t seed, const restrictions& at_most) {
  plan made;
  made.seed = seed;
  draw_size(made, at_most);
  draw_resources(made, at_most);
  draw_troubles(made, at_most);
  draw_tuning(made);
  draw_network(made);
  draw_clocks(made);
  draw_disturbances(made, at_most);
  return made;
}

bool plan::strikes() const noexcept {
  return strikes_until > moment{} &&
         (troubles.has(trouble::client_pause) || troubles.has(trouble::cut) ||
          troubles.has(trouble::stall) || troubles.has(trouble::server_pause));
}

facts plan::known() const {
  facts made;
  for (const resource_plan& each : resources) made.resources.push_back({each.kind, each.max});
  made.waiter_lease = server.rules.waiter_lease;
  made.calm = disturbances.empty() && !strikes() && server.dialect != dialect::polling;
  // A push and the attempt it causes; an attempt already in flight; a waiter that is leaving.
  made.round_trip = normal.longest * 8 + late.timer * 4 + milliseconds(3);
  made.recheck = limit.recheck;
  made.recovery = core::command_limit(limit, ttl) + retry.limit + milliseconds(300) +
                  made.round_trip + late.timer;
  made.lateness = late.timer + late.notice + microseconds(10);
  made.turn = limit.turn + limit.turn / 100;
  return made;
}

std::string restrictions::to_options() const {
  const restrictions none;
  std::string text;
  const auto add = [&text](const char* option, std::uint32_t value, std::uint32_t normal) {
    if (value < normal) text.append(" ").append(option).append(" ").append(std::to_string(value));
  };
  add("--clients", clients, none.clients);
  add("--actors", actors, none.actors);
  add("--rounds", rounds, none.rounds);
  add("--resources", resources, none.resources);
  add("--disturbances", disturbances, none.disturbances);
  std::string kept;
  bool all = true;
  for (std::size_t kind = 0; kind < trouble_kinds; ++kind) {
    if (!troubles.has(static_cast<trouble>(kind))) {
      all = false;
    } else {
      kept.append(kept.empty() ? "" : ",").append(trouble_names[kind]);
    }
  }
  if (!all) text.append(" --only ").append(kept.empty() ? "nothing" : kept);
  return text;
}

}  // namespace holdfast::sim
