#include "tools/bench/bench_arguments.hpp"

#include "cli/number_text.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

using checked = outcome<void>;

constexpr std::uint32_t most_threads = 1024;
constexpr std::uint32_t most_processes = 64;
constexpr std::uint32_t most_permits = 1'000'000;
constexpr duration shortest_run = std::chrono::milliseconds(100);
constexpr duration longest_run = std::chrono::hours(1);
constexpr duration longest_hold = std::chrono::minutes(1);

constexpr std::array<std::pair<std::string_view, lock_choice>, 3> choices{
    {{"same", lock_choice::same}, {"own", lock_choice::own}, {"zipf", lock_choice::zipf}}};

constexpr std::array<std::pair<std::string_view, lock_kind>, 4> kinds{
    {{"mutex", lock_kind::mutex},
     {"fair", lock_kind::fair},
     {"rw", lock_kind::rw},
     {"semaphore", lock_kind::semaphore}}};

template <class Table>
auto find_by_name(const Table& table, std::string_view name) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& one) { return one.first == name; });
}

checked read_count(const std::optional<std::string>& text, const char* option, std::uint32_t most,
                   std::uint32_t& into) {
  if (!text) return {};
  const auto count = parse_number(*text, 1, most);
  if (!count) return usage(std::string(option) + " " + count.error(), "bench");
  into = *count;
  return {};
}

checked read_span(const std::optional<std::string>& text, const char* option, duration least,
                  duration most, duration& into) {
  if (!text) return {};
  const auto span = parse_duration(*text);
  if (!span) return usage(std::string(option) + " " + span.error(), "bench");
  if (*span < least || *span > most) {
    return usage(std::string(option) + " must be from " + to_text(least) + " to " + to_text(most),
                 "bench");
  }
  into = *span;
  return {};
}

checked read_mode(const std::string& text, bench_arguments& into) {
  const auto colon = std::min(text.find(':'), text.size());
  const auto* const kind = find_by_name(kinds, std::string_view(text).substr(0, colon));
  if (kind == kinds.end()) {
    return usage("--mode is mutex, fair, rw:READS or semaphore:PERMITS", "bench");
  }
  into.mode = kind->second;
  if (colon == text.size()) return {};
  const std::string_view rest = std::string_view(text).substr(colon + 1);
  if (into.mode == lock_kind::rw) {
    const auto reads = parse_number(rest, 0, 100);
    if (!reads) return usage("--mode rw's share of readers " + reads.error(), "bench");
    into.reads = *reads;
    return {};
  }
  if (into.mode == lock_kind::semaphore) {
    const auto permits = parse_number(rest, 1, most_permits);
    if (!permits) return usage("--mode semaphore's permits " + permits.error(), "bench");
    into.permits = *permits;
    return {};
  }
  return usage("only rw and semaphore have a number behind them", "bench");
}

}  // namespace

std::string to_text(lock_choice locks) {
  const auto* const found = std::find_if(choices.begin(), choices.end(),
                                         [&](const auto& one) { return one.second == locks; });
  return std::string(found->first);
}

std::string mode_text(const bench_arguments& how) {
  const auto* const found = std::find_if(kinds.begin(), kinds.end(),
                                         [&](const auto& one) { return one.second == how.mode; });
  std::string text(found->first);
  if (how.mode == lock_kind::rw) text += ":" + std::to_string(how.reads);
  if (how.mode == lock_kind::semaphore) text += ":" + std::to_string(how.permits);
  return text;
}

outcome<void> read_bench(const raw_arguments& raw, bench_arguments& into) {
  if (!raw.words.empty() || !raw.tail.empty()) return usage("takes no name", "bench");
  if (auto fine = read_count(raw.threads, "--threads", most_threads, into.threads); !fine) {
    return fine;
  }
  if (auto fine = read_count(raw.processes, "--processes", most_processes, into.processes); !fine) {
    return fine;
  }
  if (auto fine = read_span(raw.hold, "--hold", duration{0}, longest_hold, into.hold); !fine) {
    return fine;
  }
  if (auto fine = read_span(raw.length, "--duration", shortest_run, longest_run, into.length);
      !fine) {
    return fine;
  }
  if (raw.choice) {
    const auto* const choice = find_by_name(choices, *raw.choice);
    if (choice == choices.end()) return usage("--locks is same, own or zipf", "bench");
    into.locks = choice->second;
  }
  into.json = raw.json;
  return raw.mode ? read_mode(*raw.mode, into) : checked{};
}

}  // namespace holdfast::cli
