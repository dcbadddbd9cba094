#include "torture/plan.hpp"

#include "sim/random.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

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

namespace {

using nlohmann::json;

constexpr std::uint32_t most_clients = 256;
constexpr std::uint32_t most_threads = 4;
constexpr duration longest_run = std::chrono::hours(48);
constexpr std::size_t most_orders = 1'000'000;

void demand(bool fine, const char* what) {
  if (!fine) throw std::runtime_error(std::string("not a plan of a torture: ") + what);
}

template <class T>
T read_number(const json& from, const char* key, T least, T most) {
  demand(from.at(key).is_number_integer(), key);
  const std::int64_t value = from.at(key).get<std::int64_t>();
  demand(value >= static_cast<std::int64_t>(least) && value <= static_cast<std::int64_t>(most),
         key);
  return static_cast<T>(value);
}

template <class Word, class Find>
std::vector<Word> read_words(const json& from, Find find) {
  std::vector<Word> all;
  for (const auto& each : from) {
    const auto word = find(each.get<std::string>());
    demand(word.has_value(), "an unknown word");
    all.push_back(*word);
  }
  return all;
}

json to_json(const order& one) {
  return {{"fault", to_string(one.what)},
          {"begin", one.begin.count()},
          {"length", one.length.count()},
          {"target", one.target}};
}

order order_from(const json& read, const plan& wanted) {
  order one;
  const auto what = fault_named(read.at("fault").get<std::string>());
  demand(what.has_value(), "an unknown fault");
  one.what = *what;
  const std::int64_t most = wanted.length.count();
  one.begin = duration(read_number<std::int64_t>(read, "begin", 0, most));
  one.length = duration(read_number<std::int64_t>(read, "length", 0, most));
  one.target = read_number<std::uint32_t>(read, "target", 0, most_clients);
  return one;
}

}  // namespace

json to_json(const plan& wanted) {
  json workloads = json::array();
  for (const workload each : wanted.workloads) workloads.push_back(to_string(each));
  json faults = json::array();
  for (const fault each : wanted.faults) faults.push_back(to_string(each));
  json schedule = json::array();
  for (const order& each : wanted.schedule) schedule.push_back(to_json(each));
  return {
      {"engine", wanted.engine},         {"clients", wanted.clients}, {"threads", wanted.threads},
      {"length", wanted.length.count()}, {"ttl", wanted.ttl.count()}, {"seed", wanted.seed},
      {"workloads", workloads},          {"faults", faults},          {"schedule", schedule}};
}

plan plan_from(const json& read) {
  try {
    plan made;
    made.engine = read.at("engine").get<std::string>();
    made.clients = read_number<std::uint32_t>(read, "clients", 1, most_clients);
    made.threads = read_number<std::uint32_t>(read, "threads", 1, most_threads);
    made.length = duration(read_number<std::int64_t>(read, "length", 0, longest_run.count()));
    made.ttl = duration(read_number<std::int64_t>(read, "ttl", 0, longest_run.count()));
    demand(read.at("seed").is_number_unsigned(), "seed");
    made.seed = read.at("seed").get<std::uint64_t>();
    made.workloads = read_words<workload>(read.at("workloads"), workload_named);
    made.faults = read_words<fault>(read.at("faults"), fault_named);
    const json& schedule = read.at("schedule");
    demand(schedule.size() <= most_orders, "too many orders");
    for (const auto& each : schedule) made.schedule.push_back(order_from(each, made));
    return made;
  } catch (const json::exception&) {
    throw std::runtime_error("not a plan of a torture");
  }
}

}  // namespace holdfast::torture
