#include "explore/search.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <random>

namespace holdfast::explore {

namespace {

// Open addressing: tens of millions of numbers and nothing else.
class number_set {
 public:
  // False if it was there.
  bool insert(std::uint64_t number) {
    if (number == 0) number = 1;
    if (2 * (count_ + 1) > slots_.size()) grow();
    return place(number);
  }

 private:
  bool place(std::uint64_t number) {
    for (std::size_t at = number & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == number) return false;
      if (slots_[at] != 0) continue;
      slots_[at] = number;
      ++count_;
      return true;
    }
  }
  void grow() {
    std::vector<std::uint64_t> before(slots_.size() * 2);
    before.swap(slots_);
    count_ = 0;
    for (const std::uint64_t each : before) {
      if (each != 0) place(each);
    }
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1U << 16U);
  std::size_t count_ = 0;
};

class searching {
 public:
  searching(const scenario& in, const search_limits& limits)
      : scenario_(in), limits_(limits), random_(limits.order) {}

  search_result run() {
    const auto begun = std::chrono::steady_clock::now();
    while (result_.violations.empty()) {
      descend();
      if (!turn()) break;
      if (result_.states < std::min(limits_.states, scenario_.most_states)) continue;
      result_.complete = false;
      result_.bounded = true;
      break;
    }
    if (!result_.violations.empty()) result_.complete = false;
    result_.took = std::chrono::steady_clock::now() - begun;
    return std::move(result_);
  }

 private:
  struct fork {
    std::vector<choice> choices;
    route places;  // the original place of each choice, before reordering
    std::uint32_t taken = 0;
  };

  static const choice& taken(const fork& at) { return at.choices[at.places[at.taken]]; }

  // From the beginning to the last fork, and on from there until no new state is found.
  void descend() {
    small_world world(scenario_);
    for (const fork& each : path_) world.take(taken(each));
    while (true) {
      if (world.broken()) return convict(world);
      if (!seen_.insert(world.fingerprint())) return;
      ++result_.states;
      fork next;
      world.choices(next.choices);
      next.places.resize(next.choices.size());
      std::iota(next.places.begin(), next.places.end(), 0U);
      if (limits_.order == 1) std::ranges::reverse(next.places);
      if (limits_.order > 1) std::ranges::shuffle(next.places, random_);
      if (next.choices.empty()) {
        ++result_.runs;
        world.finish();
        if (world.broken()) convict(world);
        return;
      }
      if (path_.size() >= limits_.depth) {
        result_.complete = false;
        return;
      }
      path_.push_back(std::move(next));
      result_.deepest = std::max(result_.deepest, static_cast<std::uint32_t>(path_.size()));
      ++result_.transitions;
      world.take(taken(path_.back()));
    }
  }

  // To the next choice that was not made yet; false: there is none.
  bool turn() {
    while (!path_.empty() && path_.back().taken + 1 == path_.back().choices.size()) {
      path_.pop_back();
    }
    if (path_.empty()) return false;
    ++path_.back().taken;
    ++result_.transitions;
    return true;
  }

  void convict(const small_world& world) {
    result_.violations = world.violations();
    for (const fork& each : path_) result_.broken.push_back(each.places[each.taken]);
  }

  const scenario& scenario_;
  const search_limits limits_;
  search_result result_;
  std::vector<fork> path_;
  number_set seen_;
  std::mt19937 random_;
};

}  // namespace

search_result search(const scenario& in, const search_limits& limits) {
  return searching(in, limits).run();
}

std::vector<sim::violation> replay(const scenario& in, const route& choices,
                                   sim::history::sink timeline) {
  small_world world(in, std::move(timeline));
  std::vector<choice> possible;
  for (const std::uint32_t each : choices) {
    world.choices(possible);
    if (each >= possible.size()) break;
    world.take(possible[each]);
  }
  if (!world.broken()) world.finish();
  return world.violations();
}

// A number that occurs several times in a row is written once: 0x12 for twelve zeros.
std::string to_string(const route& choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size();) {
    std::size_t last = i;
    while (last < choices.size() && choices[last] == choices[i]) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(choices[i]);
    if (last - i > 1) text += "x" + std::to_string(last - i);
    i = last;
  }
  return text;
}

std::optional<route> route_in(std::string_view text) {
  route made;
  while (!text.empty()) {
    const std::string_view step = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), step.size() + 1));
    std::uint32_t number = 0;
    std::uint32_t times = 1;
    const char* const end = step.data() + step.size();
    auto read = std::from_chars(step.data(), end, number);
    if (read.ec != std::errc{}) return std::nullopt;
    if (read.ptr != end && *read.ptr == 'x') read = std::from_chars(read.ptr + 1, end, times);
    if (read.ec != std::errc{} || read.ptr != end || times > 100'000) return std::nullopt;
    made.insert(made.end(), times, number);
  }
  return made;
}

}  // namespace holdfast::explore
