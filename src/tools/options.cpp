#include "cli/options.hpp"

#include "torture/testbed.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::uint32_t most_processes = 64;
constexpr std::uint32_t most_buyers = 20'000;  // each is a thread
constexpr std::uint32_t most_stock = 1'000'000;
constexpr std::uint32_t most_threads = 1024;
constexpr std::uint32_t most_clients = 200;
constexpr std::uint32_t most_permits = 1'000'000;

constexpr std::array<std::pair<std::string_view, lock_choice>, 3> choices{
    {{"same", lock_choice::same}, {"own", lock_choice::own}, {"zipf", lock_choice::zipf}}};

constexpr std::array<std::pair<std::string_view, lock_kind>, 4> kinds{
    {{"mutex", lock_kind::mutex},
     {"fair", lock_kind::fair},
     {"rw", lock_kind::rw},
     {"semaphore", lock_kind::semaphore}}};

void read_mode(const std::string& text, bench_arguments& into) {
  const auto colon = std::min(text.find(':'), text.size());
  const auto kind = choice(
      kinds, "--mode must be mutex, fair, rw:READS or semaphore:PERMITS")(text.substr(0, colon));
  if (!kind) refuse(kind.error());
  into.mode = *kind;
  if (colon == text.size()) return;
  const std::string rest = text.substr(colon + 1);
  if (*kind == lock_kind::rw) {
    const auto reads = parse_number(rest, 0, 100);
    if (!reads) refuse("--mode rw's share of readers " + reads.error());
    into.reads = *reads;
  } else if (*kind == lock_kind::semaphore) {
    const auto permits = parse_number(rest, 1, most_permits);
    if (!permits) refuse("--mode semaphore's permits " + permits.error());
    into.permits = *permits;
  } else {
    refuse("--mode: only rw and semaphore take a number");
  }
}

understood<std::string> read_engine(const std::string& text) {
  const auto& known = torture::engines();
  if (std::find(known.begin(), known.end(), text) != known.end()) return text;
  return tl::unexpected("must be one of " + joined(known));
}

understood<std::vector<torture::fault>> read_faults(const std::string& text) {
  if (text == "none") return {};
  return list_of(torture::all_faults)(text);
}

understood<std::uint64_t> read_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, seed);
  if (problem == std::errc{} && rest == end) return seed;
  return tl::unexpected(std::string("must be a whole number"));
}

}  // namespace

void declare_demo(CLI::App& command, arguments& into) {
  command.require_subcommand(0, 1);
  CLI::App& sale = add_command(command, "flash-sale");
  add(sale, "--buyers", into.sale.buyers, number(1, most_buyers));
  add(sale, "--stock", into.sale.stock, number(1, most_stock));
  add(sale, "--processes", into.sale.processes, number(1, most_processes));
  add(sale, "--lock", into.sale.locks, list_of(into.sale.locks));
}

void check_demo(const typed_line& line, arguments& into) {
  if (into.command == "demo flash-sale") return no_words(line);
  refuse("there is one demo; run holdfast demo flash-sale");
}

void declare_bench(CLI::App& command, arguments& into) {
  bench_arguments& how = into.bench;
  add(command, "--threads", how.threads, number(1, most_threads));
  add(command, "--processes", how.processes, number(1, most_processes));
  add(command, "--locks", how.locks, choice(choices, "must be same, own or zipf"));
  command.add_option_function<std::string>(
      "--mode", [&how](const std::string& text) { read_mode(text, how); });
  add(command, "--hold", how.hold, span({}, std::chrono::minutes(1)));
  add(command, "--duration", how.length,
      span(std::chrono::milliseconds(100), std::chrono::hours(1)));
  command.add_flag("--json", how.json);
}

void declare_torture(CLI::App& command, arguments& into) {
  torture_arguments& how = into.torture;
  add(command, "--start", how.start, read_engine);
  add(command, "--clients", how.clients, number(1, most_clients));
  add(command, "--duration", how.length, span(std::chrono::seconds(1), std::chrono::hours(24)));
  add(command, "--ttl", how.ttl, span(std::chrono::milliseconds(200), std::chrono::minutes(1)));
  add(command, "--workload", how.workloads, list_of(torture::all_workloads));
  add(command, "--faults", how.faults, read_faults);
  add(command, "--seed", how.seed, read_seed);
  command.add_option("--json", how.json);
  command.add_option("--report", how.report);
}

void check_torture(const typed_line& line, arguments& into) {
  torture_arguments& how = into.torture;
  if (!how.start.empty() && into.global.url) refuse("--start and --url exclude each other");
  const auto all = all_of(line);
  if (all.empty()) return;
  if (all.front() == "client" && all.size() == 3) {
    // What the clients of a run are started with.
    const auto process = parse_number(all[2], 0, 1'000'000);
    if (!process) refuse("client " + process.error());
    how.what = torture_arguments::verb::client;
    how.process = static_cast<std::int32_t>(*process);
  } else if (all.front() == "check" && all.size() == 2) {
    how.what = torture_arguments::verb::check;
  } else if (all.front() == "replay" && all.size() == 2) {
    how.what = torture_arguments::verb::replay;
  } else {
    refuse("torture takes no argument, or check FILE, or replay FILE");
  }
  how.file = all[1];
}

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

}  // namespace holdfast::cli
