#include "torture/plan.hpp"

#include "sim/random.hpp"

#include <algorithm>

namespace holdfast::torture {

namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t permits = 3;
constexpr duration settling = milliseconds(300);  // before the first fault and after the last

bool over_at_once(fault what) {
  return what == fault::kill_client || what == fault::cut || what == fault::failover ||
         what == fault::script_flush || what == fault::clock_jump || what == fault::kill_others;
}

bool in_first_lane(fault what) { return hits_processes(what) || what == fault::clock_jump; }

void shuffle(std::vector<fault>& kinds, sim::random_source& random) {
  for (std::size_t i = kinds.size(); i > 1; --i) std::swap(kinds[i - 1], kinds[random.below(i)]);
}

void fill_lane(const plan& wanted, std::vector<fault> kinds, sim::random_source random,
               std::vector<order>& into) {
  if (kinds.empty()) return;
  // In a short run faults are short, so that each kind has its turn.
  const auto turns = static_cast<std::int64_t>(kinds.size()) * 2;
  const duration longest = std::clamp<duration>(
      std::min<duration>(wanted.ttl * 2, wanted.length / turns), milliseconds(60), wanted.ttl * 2);
  const duration gap =
      std::clamp<duration>(wanted.length / (turns * 2), milliseconds(40), std::chrono::seconds(2));
  duration at = settling;
  for (;;) {
    shuffle(kinds, random);
    for (const fault what : kinds) {
      order next{.what = what, .begin = at + random.between(gap / 4, gap)};
      next.length = over_at_once(what) ? duration{} : random.between(longest / 8, longest);
      next.target = static_cast<std::uint32_t>(random.below(wanted.clients));
      at = next.begin + next.length;
      if (at + settling > wanted.length) return;
      into.push_back(next);
    }
  }
}

}  // namespace

std::vector<order> make_schedule(const plan& wanted) {
  const sim::random_source random(wanted.seed);
  std::vector<fault> first;
  std::vector<fault> second;
  for (const fault what : wanted.faults) (in_first_lane(what) ? first : second).push_back(what);
  std::vector<order> all;
  fill_lane(wanted, first, random.branch(1), all);
  fill_lane(wanted, second, random.branch(2), all);
  std::stable_sort(all.begin(), all.end(),
                   [](const order& left, const order& right) { return left.begin < right.begin; });
  return all;
}

std::vector<resource> resources_of(const plan& wanted) {
  using sim::resource_kind;
  std::vector<resource> all;
  for (const workload each : wanted.workloads) {
    const auto add = [&](const std::string& suffix, resource_kind kind, std::uint32_t max = 1) {
      all.push_back({std::string(to_string(each)) + suffix, each, {kind, max}});
    };
    switch (each) {
      case workload::mutex:
        add("-hot", resource_kind::mutex);
        add("-cold", resource_kind::mutex);
        break;
      case workload::multi:
        for (const char* suffix : {"-a", "-b", "-c"}) add(suffix, resource_kind::mutex);
        break;
      case workload::rw:
        add("", resource_kind::shared);
        break;
      case workload::semaphore:
        add("", resource_kind::semaphore, permits);
        break;
      case workload::fair:
      case workload::election:
        add("", resource_kind::mutex);
        break;
      case workload::latch:
        break;
    }
  }
  return all;
}

}  // namespace holdfast::torture
