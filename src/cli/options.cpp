#include "cli/options.hpp"

#include "core/lease_token.hpp"
#include "core/limits.hpp"
#include "core/names.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

void check_name(const std::string& name) {
  if (const auto fine = core::check_name(name); !fine) refuse(fine.error().detail);
}

std::string only_name(const typed_line& line) {
  auto all = all_of(line);
  if (all.size() != 1) refuse(line.name + " needs one NAME");
  check_name(all.front());
  return std::move(all.front());
}

// run, acquire, elect, multi run

constexpr duration longest_grace = std::chrono::seconds(5);
constexpr duration least_at_most = std::chrono::seconds(1);
constexpr std::uint32_t most_permits = 1'000'000;

auto ttl_span() { return span(core::default_limits.min_ttl, core::default_limits.max_ttl); }

void add_waiting(CLI::App& command, hold_arguments& into) {
  add(command, "--wait", into.acquire.wait, parse_duration);
  add(command, "--ttl", into.lock.ttl, ttl_span());
  add(command, "--lock-delay", into.lock.lock_delay, span({}, core::default_limits.max_ttl));
  add(command, "--busy-exit-code", into.busy_exit_code, number(0, 255));
  command.add_flag("--quiet", into.quiet);
}

void add_holding(CLI::App& command, hold_arguments& into) {
  add_waiting(command, into);
  add(command, "--grace", into.grace, parse_duration);
  command.add_flag("--pass-url", into.pass_url);
  command.add_flag("--pass-notify", into.pass_notify);
}

void add_locking(CLI::App& command, hold_arguments& into) {
  add_holding(command, into);
  add(command, "--at-least", into.at_least, parse_duration);
  add(command, "--at-most", into.lock.max_hold, span(least_at_most));
  command.add_flag("--fair", into.lock.fair);
  command.add_flag_function("--no-renew", [&into](std::int64_t times) {
    into.lock.renew = times > 0 ? renew::never : renew::automatic;
  });
}

// Not exclusively: a reader, or permits of a semaphore.
void add_kind(CLI::App& command, hold_arguments& into) {
  command.add_flag("--shared", into.shared);
  add(command, "--permits", into.permits, number(1, most_permits));
  add(command, "--max", into.max, number(1, most_permits));
}

void declare_run(CLI::App& command, arguments& into) {
  add_locking(command, into.hold);
  add_kind(command, into.hold);
}

void declare_acquire(CLI::App& command, arguments& into) {
  add_waiting(command, into.hold);
  add_kind(command, into.hold);
  command.add_flag("--fair", into.hold.lock.fair);
  add(command, "--token-file", into.token.token_file, not_empty);
  command.add_flag("--json", into.token.json);
}

understood<std::string> read_id(const std::string& text) {
  if (text.size() > core::longest_payload) {
    return tl::unexpected(std::string("has at most 256 bytes"));
  }
  if (core::clean_payload(text) != text) {
    return tl::unexpected(std::string("must be UTF-8 without control characters"));
  }
  return not_empty(text);
}

void declare_elect(CLI::App& command, arguments& into) {
  add_holding(command, into.hold);
  add(command, "--id", into.hold.id, read_id);
  add(command, "--listen", into.hold.listen, parse_listen_address);
}

void declare_multi(CLI::App& command, arguments& into) {
  command.require_subcommand(0, 1);
  add_locking(add_command(command, "run"), into.hold);
}

void check_times(const typed_line& line, hold_arguments& into) {
  if (!given(line, "--grace")) {
    into.grace = std::min({longest_grace, into.lock.ttl / 4, into.lock.max_hold / 4});
  }
  if (into.grace >= into.lock.ttl / 2) {
    refuse("--grace must be less than half of --ttl, which is " + to_text(into.lock.ttl));
  }
  if (into.grace >= into.lock.max_hold / 2) refuse("--grace must be less than half of --at-most");
  into.lock.notice = std::max(into.grace, kill_margin(into.lock.ttl));
  if (into.at_least > into.lock.max_hold) refuse("--at-least must not exceed --at-most");
}

void check_kind(const typed_line& line, const hold_arguments& into) {
  if (!given(line, "--permits") && !into.max) return;
  if (into.shared) refuse("--shared and --permits exclude each other");
  if (!into.max) refuse("--permits needs --max, the total number of permits");
  if (into.permits > *into.max) refuse("--permits must not exceed --max");
}

// NAME... -- CMD ARGS...; put a name that begins with '-' between two: -- -x -- CMD.
void read_names_and_command(const typed_line& line, bool several, hold_arguments& into) {
  if (!line.split) refuse("the command to run comes after --");
  into.names = line.before;
  into.command = line.after;
  const auto second = std::find(line.after.begin(), line.after.end(), "--");
  if (into.names.empty() && second != line.after.end()) {
    into.names.assign(line.after.begin(), second);
    into.command.assign(second + 1, line.after.end());
  }
  if (into.names.empty()) refuse("a NAME is missing before --");
  if (!several && into.names.size() > 1) {
    refuse(line.name + " takes one NAME before --; multi run takes several");
  }
  for (const std::string& name : into.names) check_name(name);
  if (std::set(into.names.begin(), into.names.end()).size() != into.names.size()) {
    refuse("the same NAME is given twice");
  }
  if (into.command.empty()) refuse("a command to run is missing after --");
}

void check_holding(const typed_line& line, arguments& into) {
  check_times(line, into.hold);
  check_kind(line, into.hold);
  into.hold.elects = into.command == "elect";
  read_names_and_command(line, into.command == "multi run", into.hold);
}

void check_multi(const typed_line& line, arguments& into) {
  if (into.command == "multi run") return check_holding(line, into);
  refuse("multi is followed by run: multi run NAME NAME... -- CMD");
}

void check_acquire(const typed_line& line, arguments& into) {
  check_times(line, into.hold);
  check_kind(line, into.hold);
  into.hold.names = {only_name(line)};
}

// renew, release

void declare_renew(CLI::App& command, arguments& into) {
  add(command, "--ttl", into.token.ttl, ttl_span());
  add(command, "--token-file", into.token.token_file, not_empty);
}

void declare_release(CLI::App& command, arguments& into) {
  command.add_flag("--force", into.look.force);
  command.add_flag("--yes", into.look.yes);
  add(command, "--claim", into.look.claim, not_empty);
  add(command, "--token", into.token.token, not_empty);
  add(command, "--token-file", into.token.token_file, not_empty);
}

void check_token(const token_arguments& where) {
  if (!where.token_file && !core::parse_token(where.token)) {
    refuse("the token is malformed or incomplete");
  }
}

void check_renew(const typed_line& line, arguments& into) {
  const auto all = all_of(line);
  if (all.size() > 1) refuse("renew takes one TOKEN");
  if (all.size() == 1 && !into.token.token_file) into.token.token = all.front();
  if (all.empty() != into.token.token_file.has_value())
    refuse("renew needs either a TOKEN or --token-file");
  check_token(into.token);
}

void check_release(const typed_line& line, arguments& into) {
  const look_arguments& how = into.look;
  if (into.token.given()) {
    if (!all_of(line).empty()) refuse("release takes either a token or a NAME");
    if (how.force || how.yes || !how.claim.empty()) {
      refuse("--force, --claim and --yes go with a NAME, not with a token");
    }
    if (!into.token.token.empty() && into.token.token_file) {
      refuse("release takes either --token or --token-file");
    }
    return check_token(into.token);
  }
  into.look.name = only_name(line);
  if (!how.force) {
    refuse(
        "release takes a lock from its holder and needs --force, or the --token of acquire; "
        "revoke is the safe way");
  }
}

// latch

constexpr std::uint32_t most_latch = 1'000'000;

void declare_latch(CLI::App& command, arguments& into) {
  add(command, "--wait", into.latch.wait.wait, parse_duration);
  add(command, "--id", into.latch.id, not_empty);
}

void check_latch(const typed_line& line, arguments& into) {
  using verb = latch_arguments::verb;
  static constexpr std::array<std::pair<std::string_view, verb>, 4> verbs{
      {{"set", verb::set}, {"down", verb::down}, {"wait", verb::wait}, {"count", verb::count}}};
  const auto all = all_of(line);
  if (all.size() < 2) refuse("latch needs a NAME and one of set, down, wait, count");
  into.latch.name = all[0];
  check_name(into.latch.name);
  const auto what = choice(verbs, "after the NAME comes set, down, wait or count")(all[1]);
  if (!what) refuse(what.error());
  into.latch.what = *what;
  const bool counts = *what == verb::set || *what == verb::down;
  if (all.size() > (counts ? 3U : 2U)) refuse("too many arguments");
  if (*what == verb::set && all.size() < 3) refuse("latch NAME set needs a number");
  if (all.size() == 3) {
    const auto count = parse_number(all[2], 1, most_latch);
    if (!count) refuse("a latch's count " + count.error());
    into.latch.count = *count;
  }
  if (given(line, "--id") && *what != verb::down) refuse("--id goes with latch NAME down");
  if (given(line, "--wait") && *what != verb::wait) refuse("--wait goes with latch NAME wait");
}

// ls, show, revoke, watch, doctor, redis-library

void declare_ls(CLI::App& command, arguments& into) {
  command.add_flag("--json", into.look.json);
  command.add_flag("--names", into.look.names);
}

void declare_json(CLI::App& command, arguments& into) {
  command.add_flag("--json", into.look.json);
}

void declare_watch(CLI::App& command, arguments& into) {
  declare_json(command, into);
  command.add_flag("--all", into.look.all);
}

void declare_nothing(CLI::App& /*command*/, arguments& /*into*/) {}

void check_one_name(const typed_line& line, arguments& into) { into.look.name = only_name(line); }

void check_some_name(const typed_line& line, arguments& into) {
  if (into.look.json && into.look.names) refuse("--json and --names exclude each other");
  const auto all = all_of(line);
  if (all.size() > 1) refuse(line.name + " takes at most one name");
  if (!all.empty()) into.look.name = only_name(line);
}

void check_no_name(const typed_line& line, arguments& /*into*/) { no_words(line); }

// serve

void declare_serve(CLI::App& command, arguments& into) {
  add(command, "--listen", into.serve.listen, parse_listen_address);
  command.add_option("--allow-host", into.serve.hosts)->allow_extra_args(false);
  add(command, "--token-file", into.serve.token_file, not_empty);
  command.add_flag("--allow-revoke", into.serve.allow_revoke);
}

void check_serve(const typed_line& line, arguments& into) {
  no_words(line);
  if (into.serve.allow_revoke && !into.serve.token_file) {
    refuse("--allow-revoke needs --token-file: the token allows to revoke");
  }
}

constexpr std::array known{known_command{"run", declare_run, check_holding},
                           known_command{"acquire", declare_acquire, check_acquire},
                           known_command{"renew", declare_renew, check_renew},
                           known_command{"elect", declare_elect, check_holding},
                           known_command{"multi", declare_multi, check_multi},
                           known_command{"latch", declare_latch, check_latch},
                           known_command{"ls", declare_ls, check_some_name},
                           known_command{"show", declare_json, check_one_name},
                           known_command{"release", declare_release, check_release},
                           known_command{"revoke", declare_nothing, check_one_name},
                           known_command{"watch", declare_watch, check_some_name},
                           known_command{"doctor", declare_json, check_no_name},
                           known_command{"redis-library", declare_nothing, check_no_name},
                           known_command{"serve", declare_serve, check_serve},
                           known_command{"demo", declare_demo, check_demo},
                           known_command{"bench", declare_bench, check_no_name},
                           known_command{"torture", declare_torture, check_torture}};

constexpr std::array<std::pair<std::string_view, log_level>, 5> levels{
    {{"off", log_level::off},
     {"error", log_level::error},
     {"warn", log_level::warn},
     {"info", log_level::info},
     {"debug", log_level::debug}}};

}  // namespace

std::span<const known_command> known_commands() noexcept { return known; }

duration kill_margin(duration ttl) noexcept {
  return std::min<duration>(std::chrono::milliseconds(100), ttl / 4);
}

void declare_global(CLI::App& app, arguments& into) {
  app.add_flag("-h,--help", into.help);
  app.add_flag("--version", into.version);
  app.add_option("--url", into.serve.urls)->allow_extra_args(false);
  app.add_option("--namespace", into.global.space);
  app.add_option("--password-file", into.global.password_file);
  add(app, "--log-level", into.global.level,
      choice(levels, "must be off, error, warn, info or debug"));
}

}  // namespace holdfast::cli
