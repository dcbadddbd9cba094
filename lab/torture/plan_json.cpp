#include "torture/plan_json.hpp"

#include <stdexcept>

namespace holdfast::torture {

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
