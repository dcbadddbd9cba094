// holdfast bench: what an engine gives, measured by real threads and processes.
#include "cli/commands.hpp"
#include "cli/output.hpp"
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
