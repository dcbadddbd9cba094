// holdfast bench: what an engine achieves, measured with real threads and processes, for people and
// for programs. What could not be measured is "-" for people and null for programs, never a zero.
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"
#include "tools/bench/workload.hpp"

#include <holdfast_version.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

struct bench_report {
  bench_arguments how;
  std::string engine;
  duration counted{};  // without the warm-up
  std::uint64_t grants = 0;
  std::vector<std::uint64_t> grants_by_thread{};
  double fairness = 1;  // Jain's index over the threads
  worker_result all{};  // of all processes; memory: of the largest
  std::optional<duration> server_processor{};
  std::optional<std::uint64_t> server_memory{};

  [[nodiscard]] double per_second() const noexcept {
    return static_cast<double>(grants) / std::chrono::duration<double>(counted).count();
  }
};

struct server_use {
  std::optional<server_process::use> before;
  std::optional<server_process::use> after;
};

using nlohmann::ordered_json;

constexpr std::array<std::pair<const char*, double>, 4> shares{
    {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}};

double microseconds(duration span) {
  return std::chrono::duration<double, std::micro>(span).count();
}

// About three digits, with a unit.
std::string span_text(duration span) {
  const double length = microseconds(span);
  const auto digits = [](double value) { return value < 10 ? 2 : value < 100 ? 1 : 0; };
  if (length < 1'000) return with_digits(length, digits(length)) + " µs";
  if (length < 1'000'000) return with_digits(length / 1e3, digits(length / 1e3)) + " ms";
  return with_digits(length / 1e6, digits(length / 1e6)) + " s";
}

std::string size_text(std::uint64_t bytes) {
  return with_digits(static_cast<double>(bytes) / (1 << 20), 1) + " MiB";
}

// Per grant; none if there were no grants.
std::optional<double> each(const bench_report& report, std::optional<double> sum) {
  if (!sum || report.grants == 0) return std::nullopt;
  return *sum / static_cast<double>(report.grants);
}

struct costs {
  std::optional<double> client, server;  // microseconds of processor time
  std::optional<double> sends, receives, sent, received;
};

costs costs_of(const bench_report& report) {
  const auto& traffic = report.all.traffic;
  const auto number = [&](std::uint64_t cli::traffic::*which) -> std::optional<double> {
    if (!traffic) return std::nullopt;
    return static_cast<double>((*traffic).*which);
  };
  std::optional<double> server;
  if (report.server_processor) server = microseconds(*report.server_processor);
  return {.client = each(report, microseconds(report.all.processor)),
          .server = each(report, server),
          .sends = each(report, number(&cli::traffic::sends)),
          .receives = each(report, number(&cli::traffic::receives)),
          .sent = each(report, number(&cli::traffic::sent)),
          .received = each(report, number(&cli::traffic::received))};
}

std::vector<std::string> row(const char* what, const histogram& times) {
  std::vector<std::string> cells{what};
  for (const auto& [name, share] : shares) {
    cells.push_back(times.count() == 0 ? "-" : span_text(times.within(share)));
  }
  cells.push_back(times.count() == 0 ? "-" : span_text(times.greatest()));
  return cells;
}

// A line for each doubling of the time.
std::string bars(const histogram& times) {
  if (times.count() == 0) return {};
  std::map<std::uint64_t, std::uint64_t> by_width;
  for (const auto& [cell, count] : times.cells()) {
    by_width[std::bit_width(static_cast<std::uint64_t>(histogram::top(cell).count()))] += count;
  }
  for (std::uint64_t width = by_width.begin()->first; width < by_width.rbegin()->first; ++width) {
    by_width.try_emplace(width, 0);
  }
  std::uint64_t most = 1;
  for (const auto& [width, count] : by_width) most = std::max(most, count);
  std::vector<std::vector<std::string>> rows;
  for (const auto& [width, count] : by_width) {
    constexpr std::uint64_t longest = 40;
    const duration above{width == 0 ? 0 : std::int64_t{1} << (width - 1)};
    const double share = 100.0 * static_cast<double>(count) / static_cast<double>(times.count());
    rows.push_back({"  from " + span_text(above), with_digits(share, 2) + " %",
                    std::string(static_cast<std::size_t>(count * longest / most), '#')});
  }
  return "\nacquire\n" + columns(rows, {0, 1});
}

std::string or_dash(std::optional<double> value, int digits, const char* unit) {
  return value ? with_digits(*value, digits) + unit : "-";
}

ordered_json or_null(std::optional<double> value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json times_json(const histogram& times) {
  if (times.count() == 0) return nullptr;
  ordered_json made{{"count", times.count()}, {"mean", microseconds(times.mean())}};
  for (const auto& [name, share] : shares) made[name] = microseconds(times.within(share));
  made["max"] = microseconds(times.greatest());
  ordered_json cells = ordered_json::array();
  for (const auto& [cell, count] : times.cells()) {
    cells.push_back({microseconds(histogram::top(cell)), count});
  }
  made["histogram"] = std::move(cells);
  return made;
}

// Jain's index. 1: all had the same; 1 / n: one had everything. 1 if there are no parts, or all are
// zero.
double jain_index(const std::vector<std::uint64_t>& parts) noexcept {
  double sum = 0;
  double squares = 0;
  for (const std::uint64_t part : parts) {
    sum += static_cast<double>(part);
    squares += static_cast<double>(part) * static_cast<double>(part);
  }
  return squares > 0 ? sum * sum / (static_cast<double>(parts.size()) * squares) : 1;
}

bench_report make_report(const bench_arguments& how, const std::string& engine,
                         const bench_board& board, const server_use& server) {
  bench_report made{.how = how, .engine = engine, .counted = how.length - warm_up(how.length)};
  made.all.traffic.emplace();
  for (const worker_result& one : board.results.all()) {
    made.all.acquire.merge(one.acquire);
    made.all.release.merge(one.release);
    made.all.hand_off.merge(one.hand_off);
    made.all.processor += one.processor;
    made.all.memory = std::max(made.all.memory, one.memory);
    if (!one.traffic) made.all.traffic.reset();
    if (made.all.traffic) *made.all.traffic += *one.traffic;
  }
  made.grants_by_thread.assign(board.grants.all().begin(), board.grants.all().end());
  for (const std::uint64_t one : made.grants_by_thread) made.grants += one;
  made.fairness = jain_index(made.grants_by_thread);
  if (server.before && server.after) {
    made.server_processor = server.after->processor - server.before->processor;
    made.server_memory = server.after->memory;
  }
  return made;
}

std::string report_text(const bench_report& report) {
  const bench_arguments& how = report.how;
  const costs cost = costs_of(report);
  std::string text =
      std::to_string(how.processes) + (how.processes == 1 ? " process of " : " processes of ") +
      std::to_string(how.threads) + (how.threads == 1 ? " thread, " : " threads, ") +
      mode_text(how) + ", locks: " + to_text(how.locks) + ", held " + to_text(how.hold) + ", " +
      to_text(report.counted) + " after the warm-up; engine: " + report.engine + "\n\n";
  text += columns({{"grants a second", with_digits(report.per_second(), 0)},
                   {"fairness (Jain)", with_digits(report.fairness, 3)}});
  std::vector<std::vector<std::string>> times{{"", "p50", "p90", "p99", "p99.9", "max"}};
  times.push_back(row("acquire", report.all.acquire));
  times.push_back(row("release", report.all.release));
  times.push_back(row("hand-off", report.all.hand_off));
  text += "\n" + columns(times, {1, 2, 3, 4, 5});
  const std::string server_memory = report.server_memory ? size_text(*report.server_memory) : "-";
  text += "\n" + columns({{"", "client", "server"},
                          {"processor time a grant", or_dash(cost.client, 2, " µs"),
                           or_dash(cost.server, 2, " µs")},
                          {"memory", size_text(report.all.memory), server_memory}},
                         {1, 2});
  text += "\n" +
          columns({{"", "sent", "received"},
                   {"segments a grant", or_dash(cost.sends, 2, ""), or_dash(cost.receives, 2, "")},
                   {"bytes a grant", or_dash(cost.sent, 0, ""), or_dash(cost.received, 0, "")}},
                  {1, 2});
  return text + bars(report.all.acquire);
}

std::string report_json(const bench_report& report) {
  const bench_arguments& how = report.how;
  const costs cost = costs_of(report);
  const auto milliseconds = [](duration span) {
    return std::chrono::floor<std::chrono::milliseconds>(span).count();
  };
  ordered_json made{{"version", HOLDFAST_VERSION},
                    {"engine", report.engine},
                    {"threads", how.threads},
                    {"processes", how.processes},
                    {"locks", to_text(how.locks)},
                    {"mode", mode_text(how)},
                    {"hold_ms", milliseconds(how.hold)},
                    {"duration_ms", milliseconds(how.length)},
                    {"counted_ms", milliseconds(report.counted)},
                    {"grants", report.grants},
                    {"grants_per_second", report.per_second()},
                    {"fairness", report.fairness},
                    {"grants_by_thread", report.grants_by_thread},
                    {"acquire_us", times_json(report.all.acquire)},
                    {"release_us", times_json(report.all.release)},
                    {"hand_off_us", times_json(report.all.hand_off)}};
  made["client"] = {{"cpu_us_per_grant", or_null(cost.client)},
                    {"memory_bytes", report.all.memory}};
  made["server"] = {{"cpu_us_per_grant", or_null(cost.server)},
                    {"memory_bytes",
                     report.server_memory ? ordered_json(*report.server_memory) : ordered_json()}};
  made["network"] = {{"segments_sent_per_grant", or_null(cost.sends)},
                     {"segments_received_per_grant", or_null(cost.receives)},
                     {"bytes_sent_per_grant", or_null(cost.sent)},
                     {"bytes_received_per_grant", or_null(cost.received)}};
  return made.dump() + "\n";
}

// Between the order to start and the start: the order must have reached all.
constexpr duration run_up = std::chrono::milliseconds(50);
constexpr duration patience_to_start = std::chrono::minutes(1);
// After the end the waiters are served one by one.
constexpr duration patience_for_results = std::chrono::minutes(2);
constexpr duration patience_to_leave = std::chrono::seconds(5);

std::string fresh_name() {
  std::random_device random;
  return "bench/" + std::to_string(random());
}

int why_not(const worker_processes& all) {
  const auto number = all.ended_by();
  return tell(number ? ended_by_signal(*number, "the measurement was ") : *all.trouble());
}

std::optional<server_process::use> look_at(const std::optional<server_process>& server) {
  return server ? server->look() : std::nullopt;
}

}  // namespace

int bench(const context& context, const bench_arguments& how) {
  const auto to = find_address(context, how.processes == 1 ? memory_is::fine : memory_is::useless);
  if (!to) return tell(to.error());
  const auto with = credentials_for(context, *to);
  if (!with) return tell(with.error());
  signal_inbox inbox;
  const bench_plan plan{.how = how, .to = *to, .with = *with, .name = fresh_name()};
  const bench_board board(how);
  worker_processes all(inbox, patience_to_leave);
  all.fork_all(how.processes,
               [&](std::uint32_t process) { return measure(plan, board, all, process); });
  if (!all.wait_until_ready(patience_to_start)) return why_not(all);

  const auto server = server_process::find(to->url);
  const time_point start = clock::now() + run_up;
  status_line line;
  const auto tick = [&] {
    const auto in_ms = [](duration span) {
      return static_cast<std::size_t>(std::max(span, duration{0}) / std::chrono::milliseconds(1));
    };
    line.show(bar_text("bench", in_ms(clock::now() - start), in_ms(how.length), "ms"));
  };
  server_use use;
  board.start[0] = start.time_since_epoch().count();
  all.start();
  if (!all.wait_until(start + warm_up(how.length), tick)) return why_not(all);
  use.before = look_at(server);
  if (!all.wait_until(start + how.length, tick)) return why_not(all);
  use.after = look_at(server);
  if (!all.wait_until(clock::now() + patience_for_results)) return why_not(all);
  if (!all.all_ended()) {
    return tell({exit_code::engine, "the processes of the measurement did not end in time"});
  }
  line.wipe();
  const bench_report report = make_report(how, to->engine, board, use);
  return print_all(how.json ? report_json(report) : report_text(report));
}

}  // namespace holdfast::cli
