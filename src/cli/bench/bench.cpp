// holdfast bench: what an engine gives, measured by real threads and processes.
#include "cli/bench/bench_report.hpp"
#include "cli/bench/crew.hpp"
#include "cli/bench/server_process.hpp"
#include "cli/commands.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"

#include <random>
#include <string>

namespace holdfast::cli {

namespace {

// Between the order to start and the start: it must have reached all.
constexpr duration run_up = std::chrono::milliseconds(50);

std::string fresh_name() {
  std::random_device random;
  return "bench/" + std::to_string(random());
}

worker_plan plan_of(const context& context, const address& to, const bench_arguments& how) {
  return {.how = how,
          .url = to.url,
          .password = context.taken.password,
          .password_file = context.global.password_file,
          .space = context.global.space,
          .name = fresh_name()};
}

int why_not(const crew& all) {
  if (all.ended_by() != 0) {
    tell("the measurement was ended by " + signal_name(all.ended_by()));
    return exit_code::signalled + all.ended_by();
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
  signal_inbox inbox;
  crew all(plan_of(context, *to, how), inbox);
  if (!all.get_ready()) return why_not(all);

  const auto server = server_process::find(to->url);
  const progress bar("bench", static_cast<std::size_t>(how.length / std::chrono::milliseconds(1)),
                     "ms");
  const time_point start = clock::now() + run_up;
  const auto tick = [&] {
    const duration done = std::max(clock::now() - start, duration{0});
    bar.show(static_cast<std::size_t>(done / std::chrono::milliseconds(1)));
  };
  server_use use;
  all.start(start);
  if (!all.wait_until(start + warm_up(how.length), tick)) return why_not(all);
  use.before = look_at(server);
  if (!all.wait_until(start + how.length, tick)) return why_not(all);
  use.after = look_at(server);
  const auto results = all.take();
  if (results.empty()) return why_not(all);
  bar.wipe();
  const bench_report report = make_report(how, to->engine, results, use);
  return print_all(how.json ? report_json(report) : report_text(report));
}

}  // namespace holdfast::cli
