#include "sim/quorum/quorum_plan.hpp"

#include "sim/random.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace holdfast::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

enum class part : std::uint64_t { size = 101, tuning, network, clocks, troubles, rivalry, lies };

random_source stream(std::uint64_t seed, part which) {
  return random_source(seed).branch(static_cast<std::uint64_t>(which));
}

void draw_size(quorum_plan& made) {
  auto random = stream(made.seed, part::size);
  const std::uint64_t kind = random.below(10);
  made.members = kind < 4 ? 3 : kind < 9 ? 5 : 4;
  made.clients = static_cast<std::uint32_t>(random.between(2, 4));
  made.rounds = static_cast<std::uint32_t>(random.between(2, 6));
  made.kind = random.chance(200) ? resource_kind::shared : resource_kind::mutex;
}

void draw_tuning(quorum_plan& made) {
  auto random = stream(made.seed, part::tuning);
  static constexpr std::int64_t ttls[] = {100, 150, 300, 600};
  made.ttl = milliseconds(ttls[random.below(std::size(ttls))]);
  made.longest_hold = random.chance(350) ? made.ttl * 2 : made.ttl / random.between(4, 100);
  made.longest_think = made.ttl / random.between(4, 100);
  made.longest_wait = made.ttl * random.between(1, 4);
  made.tries = random.chance(500) ? 200 : 0;
  made.forever = static_cast<std::uint32_t>(random.between(200, 900));
  made.answer = made.ttl / random.between(3, 20);
  made.limit.recheck = milliseconds(random.between(30, 300));
  made.limit.poll_first = milliseconds(random.between(2, 20));
  made.limit.renewal_slack = milliseconds(random.between(0, 50));
  made.limit.local_hand_overs = static_cast<std::uint32_t>(random.between(0, 4));
  made.retry.first = milliseconds(random.between(2, 50));
  made.retry.limit = milliseconds(random.between(50, 400));
}

void draw_network(quorum_plan& made) {
  auto random = stream(made.seed, part::network);
  made.normal.shortest = microseconds(random.between(10, 200));
  const bool tails = random.chance(300);
  made.normal.longest = made.normal.shortest + (tails ? random.between(duration{0}, made.ttl / 16)
                                                      : microseconds(random.between(1, 2000)));
  made.late.timer = microseconds(random.between(0, 1000));
  made.late.notice = microseconds(random.between(0, 2000));
  // Without trouble an answer comes in time.
  made.answer = std::max(made.answer, made.normal.longest * 2 + made.late.timer + milliseconds(1));
  made.server.dialect = dialect::polling;
  made.server.timers = false;
  made.server.forgets_fences = true;
  made.store.dialect = dialect::polling;
  made.store.fails_fast = random.chance(500);
  made.store.sends_again = random.chance(300);
  made.store.reconnects_on_silence = random.chance(700);
}

// The condition of docs/guarantees.md: a member that lost its state does not count for the longest
// ttl, and the members' clocks are nearer to each other than that.
void draw_clocks(quorum_plan& made, bool rivalry) {
  auto random = stream(made.seed, part::clocks);
  constexpr std::int64_t fastest = 4500;  // half of 0.9 % each way
  static constexpr std::int64_t skews[] = {0, 2, 20, 100, 400};
  static constexpr std::int64_t slacks[] = {1, 10, 100, 1000};
  const bool rates = made.kinds.has(trouble::clock_rates);
  const bool forgets = made.kinds.has(trouble::server_wipe);
  const duration skew =
      rivalry ? milliseconds(400) : milliseconds(skews[random.below(std::size(skews))]);
  const duration slack =
      rivalry ? milliseconds(1) : milliseconds(slacks[random.below(std::size(slacks))]);
  for (std::uint32_t i = 0; i < made.members; ++i) {
    const duration start = seconds(100'000) + random.between(duration{0}, skew);
    const std::int64_t rate = rates && !forgets ? random.between(-fastest, fastest) : 0;
    made.member_clocks.emplace_back(start, rate);
  }
  for (std::uint32_t i = 0; i < made.clients; ++i) {
    const std::int64_t rate = random.chance(500) ? fastest : -fastest;
    made.client_clocks.emplace_back(random.between(seconds(1), seconds(1'000'000)),
                                    rates ? rate : 0);
  }
  made.server.rules.fence_slack = slack;
  made.server.rules.longest_ttl =
      std::max(made.ttl + made.ttl / 50 + milliseconds(2), skew + 2 * slack + milliseconds(2));
}

bool at_member(trouble kind) {
  return kind == trouble::server_pause || kind == trouble::server_restart ||
         kind == trouble::server_wipe;
}

void draw_troubles(quorum_plan& made) {
  static constexpr std::array kinds{
      trouble::delay,          trouble::request_loss, trouble::reply_loss,
      trouble::black_hole,     trouble::stall,        trouble::cut,
      trouble::client_pause,   trouble::client_kill,  trouble::server_pause,
      trouble::server_restart, trouble::server_wipe,  trouble::clock_rates};
  auto random = stream(made.seed, part::troubles);
  const std::uint32_t mood = random.chance(100) ? 0 : random.chance(300) ? 600 : 300;
  for (const trouble each : kinds) {
    if (random.chance(mood)) made.kinds.add(each);
  }
  const duration horizon = made.ttl * 6 + milliseconds(500);
  for (const trouble each : kinds) {
    auto own = random.branch(static_cast<std::uint64_t>(each));
    if (!made.kinds.has(each) || each == trouble::clock_rates) continue;
    const std::int64_t times = each == trouble::client_kill ? 1 : own.between(1, 4);
    for (std::int64_t i = 0; i < times; ++i) {
      quorum_trouble one;
      one.what.kind = each;
      one.what.from = own.between(duration{0}, horizon);
      const bool instant = each == trouble::cut || each == trouble::client_kill;
      const duration longest = own.chance(500) ? made.ttl * 2 : made.ttl / 4;
      one.what.to = instant ? one.what.from : one.what.from + own.between(milliseconds(1), longest);
      one.what.process = own.chance(600) ? static_cast<std::int32_t>(own.below(made.clients)) : -1;
      one.what.detail = own.next();
      one.member = at_member(each) || own.chance(600)
                       ? static_cast<std::int32_t>(own.below(made.members))
                       : -1;
      made.healed = std::max(made.healed, one.what.to);
      made.troubles.push_back(one);
    }
  }
  if (mood > 0) made.strikes_until = horizon;
}

// Many want it at once and hold it briefly, clocks differ, no proposal fits, and messages get lost:
// what the order of fences has to survive.
void make_rivalry(quorum_plan& made) {
  auto random = stream(made.seed, part::rivalry);
  made.members = random.chance(500) ? 3 : 5;
  made.clients = 4;
  made.rounds = 8;
  made.kind = resource_kind::mutex;
  made.ttl = milliseconds(600);
  made.longest_hold = milliseconds(2);
  made.longest_think = milliseconds(10);
  made.tries = 0;
  made.forever = 1000;
  made.answer = made.ttl / 4;
  made.limit.poll_first = milliseconds(2);
  made.limit.recheck = milliseconds(10);
  made.kinds = {};
  made.troubles.clear();
  made.strikes_until = {};
  made.healed = seconds(3);
  made.kinds.add(trouble::delay);
  made.kinds.add(trouble::request_loss);
  // A few links are slow, up to 120 ms; elsewhere a whole turn takes less. One in ten requests is
  // lost.
  constexpr int slow_ways = 4;
  for (int i = 0; i < slow_ways; ++i) {
    quorum_trouble slow;
    slow.what = {trouble::delay,
                 {},
                 made.healed,
                 static_cast<std::int32_t>(random.below(4)),
                 static_cast<std::uint64_t>(random.between(30, 200))};
    slow.member = static_cast<std::int32_t>(random.below(made.members));
    made.troubles.push_back(slow);
  }
  quorum_trouble lossy;
  lossy.what = {trouble::request_loss, {}, made.healed, -1, random.chance(500) ? 1U : 2U};
  made.troubles.push_back(lossy);
}

// In calm worlds, where a loss has no other cause, and in some of the others.
void draw_lies(quorum_plan& made) {
  auto random = stream(made.seed, part::lies);
  if (!made.calm() && !random.chance(300)) return;
  made.liar = static_cast<std::uint32_t>(random.below(made.members));
  const auto many = random.between(1, 12);
  for (std::int64_t i = 0; i < many; ++i) {
    made.lies.emplace_back(random.between(duration{0}, made.ttl * 6),
                           static_cast<std::uint32_t>(random.below(made.clients)));
  }
}

}  // namespace

quorum_plan draw_quorum_plan(std::uint64_t seed) {
  quorum_plan made;
  made.seed = seed;
  draw_size(made);
  draw_tuning(made);
  draw_network(made);
  draw_troubles(made);
  const bool rivalry = random_source(seed).branch(0).chance(250);
  if (rivalry) make_rivalry(made);
  draw_clocks(made, rivalry);
  draw_lies(made);
  return made;
}

facts quorum_plan::known() const {
  facts made;
  made.resources.push_back({kind, 1});
  return made;
}

}  // namespace holdfast::sim
