#include "cli/raw_arguments.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

// How many letters are wrong, missing, too many, or changed places with their neighbour. Three rows
// of the usual table: a change of places looks two rows back.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= one.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t wrong = one[i - 1] == other[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + wrong});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row.back();
}

// What was probably meant by a word that nobody knows: "; did you mean --wait?", or nothing where no known word is near.
// Of two that are equally near, the first.
std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  constexpr std::size_t letters_a_mistake = 3;
  const auto letters = std::count_if(word.begin(), word.end(), [](char c) { return c != '-'; });
  // At most one mistake in three letters, so that a word of one or two is never guessed at.
  std::size_t least = static_cast<std::size_t>(letters) / letters_a_mistake + 1;
  std::string nearest;
  for (const std::string& one : known) {
    const std::size_t far = distance(word, one);
    if (far >= least) continue;
    least = far;
    nearest = one;
  }
  return nearest.empty() ? nearest : "; did you mean " + nearest + "?";
}

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

void add_run(CLI::App& run, raw_arguments& into) {
  add_locking(run, into);
  add_kind(run, into);
}

void add_acquire(CLI::App& acquire, raw_arguments& into) {
  add_waiting(acquire, into);
  acquire.add_flag("--fair", into.fair);
  add_kind(acquire, into);
  acquire.add_option("--token-file", into.token_file);
  acquire.add_flag("--json", into.json);
}

void add_renew(CLI::App& renew, raw_arguments& into) {
  renew.add_option("--ttl", into.ttl);
  renew.add_option("--token-file", into.token_file);
}

void add_elect(CLI::App& elect, raw_arguments& into) {
  add_holding(elect, into);
  elect.add_option("--id", into.id);
  elect.add_option("--listen", into.listen);
}

void add_multi(CLI::App& multi, raw_arguments& into) {
  multi.require_subcommand(0, 1);
  add_locking(add_command(multi, "run"), into);
}

void add_latch(CLI::App& latch, raw_arguments& into) {
  latch.add_option("--wait", into.wait);
  latch.add_option("--id", into.id);
}

void add_ls(CLI::App& ls, raw_arguments& into) {
  ls.add_flag("--json", into.json);
  ls.add_flag("--names", into.names);
}

void add_json(CLI::App& command, raw_arguments& into) { command.add_flag("--json", into.json); }

void add_release(CLI::App& release, raw_arguments& into) {
  release.add_flag("--force", into.force);
  release.add_flag("--yes", into.yes);
  release.add_option("--claim", into.claim);
  release.add_option("--token", into.token);
  release.add_option("--token-file", into.token_file);
}

void add_watch(CLI::App& watch, raw_arguments& into) {
  watch.add_flag("--json", into.json);
  watch.add_flag("--all", into.all);
}

void add_serve(CLI::App& serve, raw_arguments& into) {
  serve.add_option("--listen", into.listen);
  serve.add_option("--allow-host", into.hosts)->allow_extra_args(false);
  serve.add_option("--token-file", into.token_file);
  serve.add_flag("--allow-revoke", into.allow_revoke);
}

void add_demo(CLI::App& demo, raw_arguments& into) {
  demo.require_subcommand(0, 1);
  CLI::App& sale = add_command(demo, "flash-sale");
  sale.add_option("--buyers", into.buyers);
  sale.add_option("--stock", into.stock);
  sale.add_option("--processes", into.processes);
  sale.add_option("--lock", into.locks);
}

void add_bench(CLI::App& bench, raw_arguments& into) {
  bench.add_option("--threads", into.threads);
  bench.add_option("--processes", into.processes);
  bench.add_option("--locks", into.choice);
  bench.add_option("--mode", into.mode);
  bench.add_option("--hold", into.hold);
  bench.add_option("--duration", into.length);
  bench.add_flag("--json", into.json);
}

void add_nothing(CLI::App& /*command*/, raw_arguments& /*into*/) {}

struct known_command {
  const char* name;
  void (*add_options)(CLI::App&, raw_arguments&);
};
constexpr std::array known{known_command{"run", add_run},
                           known_command{"acquire", add_acquire},
                           known_command{"renew", add_renew},
                           known_command{"elect", add_elect},
                           known_command{"multi", add_multi},
                           known_command{"latch", add_latch},
                           known_command{"ls", add_ls},
                           known_command{"show", add_json},
                           known_command{"release", add_release},
                           known_command{"revoke", add_nothing},
                           known_command{"watch", add_watch},
                           known_command{"doctor", add_json},
                           known_command{"redis-library", add_nothing},
                           known_command{"serve", add_serve},
                           known_command{"demo", add_demo},
                           known_command{"bench", add_bench},
                           known_command{"torture", add_torture}};

// Options only of commands that are named: to make them all took a quarter of the program's start.
void add_commands(CLI::App& app, const std::vector<std::string>& head, raw_arguments& into) {
  for (const known_command& one : known) {
    CLI::App& command = add_command(app, one.name);
    if (std::find(head.begin(), head.end(), one.name) != head.end()) {
      one.add_options(command, into);
    }
  }
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
  add_commands(app, head, raw);
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
