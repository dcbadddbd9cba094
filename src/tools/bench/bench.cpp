// holdfast bench: what an engine gives, measured by real threads and processes.
#include "cli/commands.hpp"
#include "cli/printer.hpp"
#include "tools/bench/report.hpp"

#include <algorithm>
#include <random>
#include <string>

namespace holdfast::cli {

namespace {

// Between the order to start and the start: it must have reached all.
constexpr duration run_up = std::chrono::milliseconds(50);
constexpr duration patience_to_start = std::chrono::minutes(1);
// After the end those who wait are served one by one.
constexpr duration patience_for_results = std::chrono::minutes(2);
constexpr duration patience_to_leave = std::chrono::seconds(5);

std::string fresh_name() {
  std::random_device random;
  return "bench/" + std::to_string(random());
}

int why_not(const worker_processes& all) {
  if (const auto number = all.ended_by()) {
    tell("the measurement was ended by " + signal_name(*number));
    return exit_code::signalled + *number;
  }
  return tell(*all.trouble());
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
  const progress bar("bench", static_cast<std::size_t>(how.length / std::chrono::milliseconds(1)),
                     "ms");
  const time_point start = clock::now() + run_up;
  const auto tick = [&] {
    const duration done = std::max(clock::now() - start, duration{0});
    bar.show(static_cast<std::size_t>(done / std::chrono::milliseconds(1)));
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
  bar.wipe();
  const bench_report report = make_report(how, to->engine, board, use);
  return print_all(how.json ? report_json(report) : report_text(report));
}

}  // namespace holdfast::cli
