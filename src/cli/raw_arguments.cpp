#include "cli/raw_arguments.hpp"

#include "cli/suggestion.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>

namespace holdfast::cli {

namespace {

void add_global(CLI::App& app, raw_arguments& into) {
  app.add_flag("-h,--help", into.help);
  app.add_flag("--version", into.version);
  app.add_option("--url", into.urls)->allow_extra_args(false);
  app.add_option("--namespace", into.space);
  app.add_option("--password-file", into.password_file);
  app.add_option("--log-level", into.log_level);
}

CLI::App& add_command(CLI::App& app, const char* name) {
  CLI::App& command = *app.add_subcommand(name);
  command.fallthrough();
  command.set_help_flag();
  return command;
}

void add_waiting(CLI::App& command, raw_arguments& into) {
  command.add_option("--wait", into.wait);
  command.add_option("--ttl", into.ttl);
  command.add_option("--lock-delay", into.lock_delay);
  command.add_option("--busy-exit-code", into.busy_exit_code);
  command.add_flag("--quiet", into.quiet);
}

void add_holding(CLI::App& command, raw_arguments& into) {
  add_waiting(command, into);
  command.add_option("--grace", into.grace);
  command.add_flag("--pass-url", into.pass_url);
  command.add_flag("--pass-notify", into.pass_notify);
}

void add_locking(CLI::App& command, raw_arguments& into) {
  add_holding(command, into);
  command.add_option("--at-least", into.at_least);
  command.add_option("--at-most", into.at_most);
  command.add_flag("--fair", into.fair);
  command.add_flag("--no-renew", into.no_renew);
}

// Not exclusively: a reader, or permits of a semaphore.
void add_kind(CLI::App& command, raw_arguments& into) {
  command.add_flag("--shared", into.shared);
  command.add_option("--permits", into.permits);
  command.add_option("--max", into.max);
}

void add_torture(CLI::App& command, raw_arguments& into) {
  command.add_option("--start", into.start);
  command.add_option("--clients", into.clients);
  command.add_option("--duration", into.length);
  command.add_option("--ttl", into.ttl);
  command.add_option("--workload", into.workload);
  command.add_option("--faults", into.faults);
  command.add_option("--seed", into.seed);
  command.add_option("--json", into.json_file);
  command.add_option("--report", into.report);
}

void add_commands(CLI::App& app, raw_arguments& into) {
  CLI::App& run = add_command(app, "run");
  add_locking(run, into);
  add_kind(run, into);

  CLI::App& acquire = add_command(app, "acquire");
  add_waiting(acquire, into);
  acquire.add_flag("--fair", into.fair);
  add_kind(acquire, into);
  acquire.add_option("--token-file", into.token_file);
  acquire.add_flag("--json", into.json);

  CLI::App& renew = add_command(app, "renew");
  renew.add_option("--ttl", into.ttl);
  renew.add_option("--token-file", into.token_file);

  CLI::App& elect = add_command(app, "elect");
  add_holding(elect, into);
  elect.add_option("--id", into.id);
  elect.add_option("--listen", into.listen);

  CLI::App& multi = *app.add_subcommand("multi");
  multi.fallthrough();
  multi.set_help_flag();
  multi.require_subcommand(0, 1);
  add_locking(add_command(multi, "run"), into);

  CLI::App& latch = add_command(app, "latch");
  latch.add_option("--wait", into.wait);
  latch.add_option("--id", into.id);

  CLI::App& ls = add_command(app, "ls");
  ls.add_flag("--json", into.json);
  ls.add_flag("--names", into.names);
  add_command(app, "show").add_flag("--json", into.json);

  CLI::App& release = add_command(app, "release");
  release.add_flag("--force", into.force);
  release.add_flag("--yes", into.yes);
  release.add_option("--claim", into.claim);
  release.add_option("--token", into.token);
  release.add_option("--token-file", into.token_file);
  add_command(app, "revoke");

  CLI::App& watch = add_command(app, "watch");
  watch.add_flag("--json", into.json);
  watch.add_flag("--all", into.all);
  add_command(app, "doctor").add_flag("--json", into.json);
  add_command(app, "redis-library");

  CLI::App& serve = add_command(app, "serve");
  serve.add_option("--listen", into.listen);
  serve.add_option("--allow-host", into.hosts)->allow_extra_args(false);
  serve.add_option("--token-file", into.token_file);
  serve.add_flag("--allow-revoke", into.allow_revoke);

  CLI::App& demo = *app.add_subcommand("demo");
  demo.fallthrough();
  demo.set_help_flag();
  demo.require_subcommand(0, 1);
  CLI::App& sale = add_command(demo, "flash-sale");
  sale.add_option("--buyers", into.buyers);
  sale.add_option("--stock", into.stock);
  sale.add_option("--processes", into.processes);
  sale.add_option("--lock", into.locks);

  CLI::App& bench = *app.add_subcommand("bench");
  bench.fallthrough();
  bench.set_help_flag();
  bench.require_subcommand(0, 1);
  bench.add_option("--threads", into.threads);
  bench.add_option("--processes", into.processes);
  bench.add_option("--locks", into.choice);
  bench.add_option("--mode", into.mode);
  bench.add_option("--hold", into.hold);
  bench.add_option("--duration", into.length);
  bench.add_flag("--json", into.json);
  add_command(bench, "worker");
  add_torture(add_command(app, "torture"), into);
}

std::string chosen(const CLI::App& app) {
  std::string name;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += (name.empty() ? "" : " ") + at->get_name();
  }
  return name;
}

// Something that may be repeated: a word, and nothing like a secret that stands in a wrong place.
bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= 24 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || c == '-';
  });
}

// The long options of the command that was chosen, and those of all commands.
std::vector<std::string> known_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* at = &app;; at = at->get_subcommands().front()) {
    for (const CLI::Option* option : at->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    if (at->get_subcommands().empty()) return names;
  }
}

std::vector<std::string> known_commands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands({})) names.push_back(one->get_name());
  return names;
}

// What no option took are words, or options that nobody knows. The library's own positional
// arguments would take "[a,b]" for a list.
outcome<void> sort_rest(const CLI::App& app, const std::vector<std::string>& head,
                        raw_arguments& into) {
  for (const std::string& one : app.remaining(true)) {
    // "-1" is a number out of range, which the command tells better.
    const bool negative = into.command == "latch" && one.size() > 1 && one[0] == '-' &&
                          one[1] >= '0' && one[1] <= '9';
    if (!one.starts_with('-') || one == "-" || negative) {
      into.words.push_back(one);
      continue;
    }
    const std::string name = one.substr(0, one.find('='));
    if (!is_word(name)) return usage("unknown option", into.command);
    return usage("unknown option " + name + suggestion(name, known_options(app)), into.command);
  }
  if (into.words.empty()) return {};
  // Whatever stands before the command was meant as one.
  const std::string& first = into.words.front();
  const auto command =
      std::find(head.begin(), head.end(), into.command.substr(0, into.command.find(' ')));
  const auto word = std::find(head.rbegin(), head.rend(), first);
  if (into.command.empty() || word.base() <= command) {
    if (!is_word(first)) return usage("unknown command");
    return usage("unknown command " + first + suggestion(first, known_commands(app)));
  }
  return {};
}

}  // namespace

outcome<raw_arguments> take_apart(std::vector<std::string> head) {
  raw_arguments raw;
  const auto split = std::find(head.begin(), head.end(), "--");
  if (split != head.end()) {
    raw.split = true;
    raw.tail.assign(split + 1, head.end());
    head.erase(split, head.end());
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  app.require_subcommand(0, 1);  // one: what follows a command is never taken for another
  add_global(app, raw);
  add_commands(app, raw);
  try {
    app.parse(std::vector<std::string>(head.rbegin(), head.rend()));  // as the library wants it
  } catch (const CLI::ArgumentMismatch& problem) {
    // "--ttl: 1 required TEXT missing"; only the option's name is ours to repeat.
    const std::string text = problem.what();
    const std::string option = text.substr(0, text.find_first_of(": "));
    return usage(option.starts_with("--") ? option + " takes one value and can be given once"
                                          : "an option takes one value and can be given once",
                 chosen(app));
  } catch (const CLI::ConversionError&) {
    return usage("an option that is switched on takes no value", chosen(app));
  } catch (const CLI::ParseError&) {
    return usage("the command line cannot be understood", chosen(app));
  }
  raw.command = chosen(app);
  if (auto fine = sort_rest(app, head, raw); !fine) return tl::unexpected(fine.error());
  return raw;
}

}  // namespace holdfast::cli
