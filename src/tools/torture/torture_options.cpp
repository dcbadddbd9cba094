#include "cli/arguments.hpp"
#include "cli/number_text.hpp"
#include "core/limits.hpp"
#include "torture/arena.hpp"
#include "torture/vocabulary.hpp"

#include <algorithm>
#include <charconv>
#include <functional>

namespace holdfast::cli {

namespace {

using checked = outcome<void>;

constexpr std::uint32_t most_clients = 200;
constexpr duration shortest_run = std::chrono::seconds(1);
constexpr duration longest_run = std::chrono::hours(24);
constexpr duration shortest_ttl = std::chrono::milliseconds(200);
constexpr duration longest_ttl = std::chrono::minutes(1);
constexpr const char* topic = "torture";

outcome<std::vector<std::string>> read_list(const std::string& text, const char* option,
                                            const std::function<bool(const std::string&)>& known) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    if (!known(one)) return usage(std::string(option) + " has a word that is not known", topic);
    if (std::find(all.begin(), all.end(), one) != all.end()) {
      return usage(std::string(option) + " lists something twice", topic);
    }
    all.push_back(one);
    at = end + 1;
  }
  return all;
}

checked read_span(const std::optional<std::string>& text, const char* option, duration least,
                  duration most, std::optional<duration>& into) {
  if (!text) return {};
  const auto span = parse_duration(*text);
  if (!span) return usage(std::string(option) + " " + span.error(), topic);
  if (*span < least || *span > most) {
    return usage(std::string(option) + " is " + to_text(least) + " to " + to_text(most), topic);
  }
  into = *span;
  return {};
}

checked read_verb(const raw_arguments& raw, torture_arguments& into) {
  std::vector<std::string> words = raw.words;
  words.insert(words.end(), raw.tail.begin(), raw.tail.end());
  if (words.empty()) return {};
  const bool client = words.front() == "client" && words.size() == 3;
  if (client) {
    // What the clients of a run are started with.
    const auto process = parse_number(words[2], 0, 1'000'000);
    if (!process) return usage("client " + process.error(), topic);
    into.what = torture_arguments::verb::client;
    into.process = static_cast<std::int32_t>(*process);
  } else if (words.front() == "check" && words.size() == 2) {
    into.what = torture_arguments::verb::check;
  } else if (words.front() == "replay" && words.size() == 2) {
    into.what = torture_arguments::verb::replay;
  } else {
    return usage("takes no argument, or check FILE, or replay FILE", topic);
  }
  into.file = words[1];
  return {};
}

checked read_numbers(const raw_arguments& raw, torture_arguments& into) {
  if (raw.clients) {
    const auto clients = parse_number(*raw.clients, 1, most_clients);
    if (!clients) return usage("--clients " + clients.error(), topic);
    into.clients = *clients;
  }
  if (raw.seed) {
    std::uint64_t seed = 0;
    const char* end = raw.seed->data() + raw.seed->size();
    const auto [rest, problem] = std::from_chars(raw.seed->data(), end, seed);
    if (problem != std::errc{} || rest != end || raw.seed->empty()) {
      return usage("--seed is a whole number", topic);
    }
    into.seed = seed;
  }
  if (auto fine = read_span(raw.length, "--duration", shortest_run, longest_run, into.length);
      !fine) {
    return fine;
  }
  return read_span(raw.ttl, "--ttl", shortest_ttl, longest_ttl, into.ttl);
}

}  // namespace

outcome<void> read_torture(const raw_arguments& raw, torture_arguments& into) {
  if (auto fine = read_verb(raw, into); !fine) return fine;
  if (auto fine = read_numbers(raw, into); !fine) return fine;
  into.json = raw.json_file.value_or("");
  into.report = raw.report.value_or("");
  if (raw.start) {
    const auto& known = torture::engines();
    if (std::find(known.begin(), known.end(), *raw.start) == known.end()) {
      std::string all;
      for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
      return usage("--start is one of " + all, topic);
    }
    if (!raw.urls.empty()) return usage("--start and --url exclude each other", topic);
    into.start = *raw.start;
  }
  if (raw.workload) {
    auto list = read_list(*raw.workload, "--workload", [](const std::string& one) {
      return torture::workload_named(one).has_value();
    });
    if (!list) return tl::unexpected(list.error());
    into.workloads = std::move(*list);
  }
  if (raw.faults) {
    if (*raw.faults == "none") {
      into.faults.emplace();
      return {};
    }
    auto list = read_list(*raw.faults, "--faults", [](const std::string& one) {
      return torture::fault_named(one).has_value();
    });
    if (!list) return tl::unexpected(list.error());
    into.faults = std::move(*list);
  }
  return {};
}

}  // namespace holdfast::cli
