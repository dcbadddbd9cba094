// The worlds that are explored: docs/exploration.md says what they are, how many states each has, and
// which of them are explored only in part.
#include "explore/scenario.hpp"

namespace holdfast::explore {

namespace {

using std::chrono::milliseconds;

constexpr budget no_trouble{.together = 0};

// How long a request is waited for, and an offer is kept.
constexpr duration a_command = lease / 3;
constexpr duration an_offer = std::chrono::seconds(2);

// Where the search of a larger world stops, even if it is incomplete.
constexpr std::uint64_t part = 60'000;

// Two clients, one lease each.
scenario two(std::string_view name, budget troubles) {
  scenario made;
  made.name = name;
  made.roles = {role{}, role{}};
  made.troubles = troubles;
  made.asked_by = milliseconds(0);
  made.longest_hold = milliseconds(1100);  // one renewal
  return made;
}

scenario three(std::string_view name, budget troubles) {
  scenario made = two(name, troubles);
  made.roles.emplace_back();
  made.asked_by = milliseconds(0);
  made.longest_hold = milliseconds(150);
  return made;
}

scenario unfair(scenario made) {
  for (role& each : made.roles) each.fair = false;
  return made;
}

// Until a pushed grant has been accepted, but before any lease is renewed.
scenario briefly(scenario made) {
  made.longest_hold = milliseconds(150);
  return made;
}

// Released at the moment it was granted.
scenario at_once(scenario made) {
  made.longest_hold = milliseconds(0);
  return made;
}

scenario unrenewed(scenario made) {
  made.renewed = false;
  made.longest_hold = horizon;  // it ends by itself
  return made;
}

// As far apart as the margin allows for: 0.9 %.
scenario drifting(scenario made) {
  made.server_rate = 4500;
  for (role& each : made.roles) each.clock_rate = -4500;
  return made;
}

// Longer than a lease: it must be renewed repeatedly, or is not held that long.
scenario at_length(scenario made) {
  made.longest_hold = lease + milliseconds(500);
  return made;
}

// The first client acquires again after its release.
scenario again(scenario made) {
  made.roles[0].rounds = 2;
  return made;
}

// Troubles begin at the first moment, when everybody asks, and last.
scenario from_the_start(scenario made, duration at_least = {}) {
  made.trouble_until = milliseconds(0);
  made.shortest_trouble = at_least;
  return made;
}

// Nobody releases: each lease ends by itself.
scenario kept(scenario made) {
  for (role& each : made.roles) each.keeps = true;
  return unrenewed(made);
}

// The first client releases immediately and acquires again, the second keeps its lease: a repeated
// release meets another holder.
scenario left_twice(scenario made) {
  made = at_once(unrenewed(again(std::move(made))));
  made.roles[1].keeps = true;
  return made;
}

scenario watching(scenario made) {
  made.dialect = sim::dialect::watching;
  return made;
}

scenario polling(scenario made) {
  made.dialect = sim::dialect::polling;
  return made;
}

// A writer that lets readers in, a writer and a reader.
scenario readers() {
  scenario made = at_once(three("three-readers", no_trouble));
  made.kind = sim::resource_kind::shared;
  made.roles[0].changes = true;
  made.roles[2].mode = spi::mode::shared;
  return made;
}

// Two permits: one, one, and both.
scenario permits() {
  scenario made = at_once(three("three-permits", no_trouble));
  made.kind = sim::resource_kind::semaphore;
  made.max = 2;
  for (role& each : made.roles) each.mode = spi::mode::permit;
  made.roles[2].permits = 2;
  return made;
}

// One detaches its lease, and two adopt it.
scenario token() {
  scenario made = at_once(three("three-token", no_trouble));
  made.roles[0].detaches = true;
  made.roles[1].adopts = made.roles[2].adopts = true;
  return made;
}

scenario latch(std::string_view name) {
  scenario made = two(name, {.losses = 1});
  made.roles.pop_back();
  made.kind = sim::resource_kind::latch;
  return made;
}

// Alone for longer than any of its state can live on the server.
scenario cut_off(std::string_view name) {
  scenario made = two(name, {.outages = 1});
  made.roles.pop_back();
  made.longest_trouble = std::chrono::seconds(10);
  return made;
}

std::vector<scenario> make() {
  std::vector<scenario> all;
  const auto add = [&all](scenario made, bool small = false) {
    made.small = small;
    all.push_back(std::move(made));
  };
  const auto add_part = [&all](scenario made) {
    made.most_states = part;
    all.push_back(std::move(made));
  };
  add(two("two-calm", no_trouble), true);
  add(unfair(two("two-unfair-calm", no_trouble)), true);
  add(drifting(unrenewed(two("two-unrenewed-drift", no_trouble))), true);
  add(two("two-cancel", {.cancels = 1}), true);
  add(readers());
  add(permits(), true);
  add(briefly(three("three-calm", no_trouble)), true);
  add(from_the_start(kept(two("two-kept-stall", {.stalls = 1})), a_command), true);
  add(token(), true);
  add(latch("one-latch-loss"), true);
  add_part(from_the_start(at_once(again(two("two-again-freeze", {.freezes = 1}))), an_offer));
  add(from_the_start(left_twice(two("two-again-loss", {.losses = 1}))));
  add_part(unfair(three("three-unfair-calm", no_trouble)));
  add_part(two("two-loss", {.losses = 1}));
  add(briefly(unfair(two("two-unfair-loss", {.losses = 1}))));
  add_part(briefly(two("two-stall", {.stalls = 1})));
  add_part(unrenewed(two("two-unrenewed-stall", {.stalls = 1})));
  add_part(briefly(two("two-pause", {.pauses = 1})));
  add(briefly(two("two-crash", {.crashes = 1})));
  add(briefly(unfair(two("two-unfair-crash", {.crashes = 1}))));
  add(briefly(watching(two("two-watching-loss", {.losses = 1}))));
  add(briefly(polling(two("two-polling-loss", {.losses = 1}))));
  add(cut_off("one-cut-off"));
  add_part(at_length(two("two-long", no_trouble)));
  add_part(at_length(two("two-long-loss", {.losses = 1})));
  add(at_length(cut_off("one-long-cut-off")));
  add_part(briefly(again(two("two-again-stall", {.stalls = 1}))));
  add_part(unrenewed(again(two("two-again-unrenewed-stall", {.stalls = 1}))));
  add_part(at_once(three("three-crashes", {.crashes = 2, .together = 2})));
  add_part(two("two-wipe", {.wipes = 1}));
  add_part(at_once(three("three-pause", {.pauses = 1})));
  add_part(at_once(three("three-crash", {.crashes = 1})));
  return all;
}

}  // namespace

const std::vector<scenario>& all_scenarios() {
  static const std::vector<scenario> all = make();
  return all;
}

}  // namespace holdfast::explore
