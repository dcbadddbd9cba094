// holdfast torture: real clients and real faults, and a verdict on everything that happened.
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "torture/judge.hpp"
#include "torture/report.hpp"
#include "torture/run.hpp"
#include "torture/wall_clock.hpp"
#include "torture/worker.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

namespace holdfast::cli {

namespace {

namespace lab = holdfast::torture;
int conclude(const lab::run_record& told, const lab::verdict& given) {
  const lab::plan& wanted = told.wanted;
  std::string text = "engine " + told.engine + ", " + std::to_string(wanted.clients) +
                     " clients, " + to_text(wanted.length) + ", ttl " + to_text(wanted.ttl) +
                     ", seed " + std::to_string(wanted.seed) + "\n\n" +
                     columns(lab::summary_of(told, given));
  for (const lab::finding& each : given.violations) text += "\nVIOLATION " + to_text(each);
  const int printed = print_all(text);
  if (!given.violations.empty()) {
    return tell(
        {exit_code::no, std::to_string(given.violations.size()) + " violations (see above)"});
  }
  if (!given.inconclusive.empty()) {
    return tell({exit_code::inconclusive, "inconclusive: " + joined(given.inconclusive)});
  }
  return printed;
}

std::string text_of(const lab::progress& now, duration length) {
  const auto seconds = [](duration span) { return std::chrono::duration<double>(span).count(); };
  return now.phase + ": " + with_digits(seconds(now.passed), 1) + " of " +
         with_digits(seconds(length), 0) + " s, " + std::to_string(now.grants) + " acquisitions, " +
         std::to_string(now.faults) + " faults";
}

std::uint64_t any_seed() {
  std::random_device random;
  return random() % 1'000'000'000;
}

outcome<std::vector<lab::fault>> faults_for(const torture_arguments& how,
                                            const lab::testbed& where) {
  const auto possible = [&](lab::fault each) {
    if (each == lab::fault::clock_jump || lab::at_call(each)) {
      return lab::shifted_clock_library().has_value();
    }
    return lab::hits_processes(each) || where.can(each);
  };
  if (!how.faults) {
    std::vector<lab::fault> all;
    std::copy_if(lab::all_faults.begin(), lab::all_faults.end(), std::back_inserter(all), possible);
    return all;
  }
  for (const lab::fault each : *how.faults) {
    if (!possible(each)) {
      return usage(std::string(lab::to_string(each)) + " is not possible with this engine",
                   "torture");
    }
  }
  return *how.faults;
}

outcome<std::vector<lab::workload>> workloads_for(const torture_arguments& how,
                                                  const lab::abilities& able) {
  if (how.workloads.empty()) return able.workloads;
  for (const lab::workload each : how.workloads) {
    if (std::find(able.workloads.begin(), able.workloads.end(), each) == able.workloads.end()) {
      return usage(able.engine + " cannot do " + std::string(lab::to_string(each)), "torture");
    }
  }
  return how.workloads;
}

struct ground {
  std::unique_ptr<lab::testbed> where;
  credentials with;
  std::string started;  // the engine; empty: somebody else's
};

outcome<ground> prepare(const context& context, std::string start, std::uint32_t clients) {
  ground made;
  if (start.empty() && !context.names_engine()) start = "embedded";
  if (!start.empty()) {
    made.where = lab::start_testbed(start, clients);
    made.started = std::move(start);
    return made;
  }
  const auto to = find_address(context);
  if (!to) return tl::unexpected(to.error());
  auto with = credentials_for(context, *to);
  if (!with) return tl::unexpected(with.error());
  made.with = std::move(*with);
  made.where = lab::foreign_testbed(to->url, clients);
  return made;
}

int keep(const lab::run_record& told, const lab::verdict& given, const torture_arguments& how) {
  std::string file = how.json;
  if (file.empty() && !given.violations.empty()) {
    file = "holdfast-torture-" + std::to_string(told.wanted.seed) + ".json";
    note("the whole history is kept in " + file + "\n");
  }
  if (!file.empty()) lab::save(told, file);
  if (!how.report.empty()) lab::save_report(told, given, how.report);
  return conclude(told, given);
}

int hold_run(const ground& where, const lab::plan& wanted, const torture_arguments& how,
             signal_inbox& inbox) {
  const lab::setup all{.wanted = wanted,
                       .password = where.with.password,
                       .space = where.with.space,
                       .program = std::filesystem::read_symlink("/proc/self/exe")};
  std::optional<int> ended_by;
  lab::run_record told;
  {
    status_line line;
    told = lab::hold(all, *where.where, [&](const lab::progress& now) {
      line.show(text_of(now, wanted.length));
      if (!ended_by) ended_by = inbox.take_end();
      return !ended_by;
    });
  }
  if (ended_by) return tell(ended_by_signal(*ended_by, "the torture was "));
  return keep(told, lab::judge(told), how);
}

int run_new(const context& context, const torture_arguments& how) {
  signal_inbox inbox;
  lab::plan wanted;
  wanted.clients = how.clients.value_or(wanted.clients);
  wanted.length = how.length.value_or(wanted.length);
  wanted.ttl = how.ttl.value_or(wanted.ttl);
  wanted.seed = how.seed ? *how.seed : any_seed();
  const auto where = prepare(context, how.start, wanted.clients);
  if (!where) return tell(where.error());
  wanted.engine = where->started;
  const auto faults = faults_for(how, *where->where);
  if (!faults) return tell(faults.error());
  wanted.faults = *faults;
  const auto workloads = workloads_for(
      how, lab::ask(where->where->quiet_url(), where->with.password, where->with.space));
  if (!workloads) return tell(workloads.error());
  wanted.workloads = *workloads;
  wanted.schedule = lab::make_schedule(wanted);
  return hold_run(*where, wanted, how, inbox);
}

int replay(const context& context, const torture_arguments& how) {
  const lab::plan wanted = lab::load_run_record(how.file).wanted;
  if (wanted.engine.empty() && !context.names_engine()) {
    const auto missing = usage("it was a run on servers of your own: give their --url", "torture");
    return tell(missing.value());
  }
  signal_inbox inbox;
  const auto where = prepare(context, context.global.url ? "" : wanted.engine, wanted.clients);
  if (!where) return tell(where.error());
  return hold_run(*where, wanted, how, inbox);
}

}  // namespace

int torture(const context& context, const torture_arguments& how) {
  try {
    switch (how.what) {
      case torture_arguments::verb::client:
        return lab::work(how.file, how.process);
      case torture_arguments::verb::check: {
        const lab::run_record told = lab::load_run_record(how.file);
        const lab::verdict given = lab::judge(told);
        if (!how.report.empty()) lab::save_report(told, given, how.report);
        return conclude(told, given);
      }
      case torture_arguments::verb::replay:
        return replay(context, how);
      case torture_arguments::verb::run:
        return run_new(context, how);
    }
  } catch (const std::runtime_error& problem) {
    return tell({exit_code::engine, std::string("torture: ") + problem.what()});
  }
  return exit_code::usage;
}

}  // namespace holdfast::cli
