// Commands for operators: holdfast show, ls, watch, doctor and redis-library, and the two
// break-glass commands, revoke and release --force.
#include "cli/commands.hpp"
#include "cli/inspection.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"
#include "stores/table.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <string>
#include <vector>

namespace holdfast::cli {

// Who holds a name, and who waits for it, in order.
int show(const context& context, const look_arguments& what) {
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  const auto state = engine->client.inspect(what.name);
  if (!state)
    return engine->refused("cannot inspect '" + what.name + "'", "inspect", state.error());
  if (what.json) return print_all(json::line(json::of(what.name, *state)));
  std::string text;
  if (state->blocked_for) {
    text = "blocked by lock delay for " + to_text(*state->blocked_for) +
           ": a holder ended abnormally\n";
  } else if (state->holders.empty()) {
    text = "free\n";
  }
  return print_all(text + holder_table(state->holders) + waiter_table(state->waiters));
}

// Names that have holders or waiters, or are blocked by a lock delay.
int ls(const context& context, const look_arguments& what) {
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  const auto all = engine->client.list(what.name);
  if (!all) return engine->refused("cannot list", "list", all.error());
  if (what.json) return print_all(json::line(json::of(*all)));
  if (what.names) {
    std::string lines;
    for (const spi::resource_summary& one : *all) lines += plain(one.name) + "\n";
    return print_all(lines);
  }
  if (all->empty()) {
    note("nothing is held or waited for\n");
    return exit_code::ok;
  }
  const bool blocked = std::any_of(all->begin(), all->end(),
                                   [](const auto& one) { return one.blocked_for.has_value(); });
  std::vector<std::vector<std::string>> rows{{"NAME", "HOLDERS", "WAITERS"}};
  if (blocked) rows.front().emplace_back("BLOCKED FOR");
  for (const spi::resource_summary& one : *all) {
    if (cannot_be_read(one)) {
      note(plain(one.name) + ": what the engine has stored cannot be read (damaged?)\n");
      continue;
    }
    rows.push_back({plain(one.name), std::to_string(one.holders), std::to_string(one.waiters)});
    if (blocked) rows.back().push_back(one.blocked_for ? to_text(*one.blocked_for) : "");
  }
  return print_all(columns(rows, {1, 2}));
}

namespace {

std::string line_of(const spi::store_event& event, wall_time at) {
  std::string line = rfc3339(at) + "  " + std::string(name_of(event.kind));
  line.resize(std::max<std::size_t>(line.size(), 37), ' ');
  line += plain(event.name) + "  " + plain(event.claim) + "  " + std::string(name_of(event.mode));
  if (event.fence) line += "  fence " + std::to_string(event.fence->value());
  if (!event.payload.empty()) line += "  " + plain(event.payload);
  return line + "\n";
}

std::string remedy_of(const error& why) {
  if (why == errc::denied) {
    return "access refused: check the certificate, the user, the password and the user's "
           "permissions";
  }
  if (why == errc::unavailable) return "is it running, and can this machine reach it?";
  return "see the engine's page in the documentation";
}

// An engine that cannot be opened is a failed check, not the end of the examination.
outcome<std::vector<spi::check>> examine(const context& context, const address& to) {
  const auto with = credentials_for(context, to);
  if (!with) return tl::unexpected(with.error());
  const auto client = connect(to, *with);
  if (!client && client.error().code == exit_code::usage) return tl::unexpected(client.error());
  if (!client) {
    return std::vector<spi::check>{{.name = "open",
                                    .state = spi::check::status::fail,
                                    .detail = client.error().answer,
                                    .remedy = "nothing else can be checked until it opens"}};
  }
  auto checks = client->probe();
  if (!checks) {
    return std::vector<spi::check>{{.name = "probe",
                                    .state = spi::check::status::fail,
                                    .detail = provenance(to.engine, "probe", checks.error()),
                                    .remedy = remedy_of(checks.error())}};
  }
  return std::move(*checks);
}

std::string line_of(const spi::check& check) {
  std::string line(name_of(check.state));
  line.resize(6, ' ');
  line += plain(check.name);
  if (!check.detail.empty()) line += ": " + plain(check.detail);
  // A remedy of several lines is something to run: printed below, unchanged.
  const std::size_t end = std::min(check.remedy.find('\n'), check.remedy.size());
  if (!check.remedy.empty()) line += "; " + plain(check.remedy.substr(0, end));
  line += "\n";
  for (std::size_t from = end + 1; from < check.remedy.size();) {
    const std::size_t to = std::min(check.remedy.find('\n', from), check.remedy.size());
    line += plain(check.remedy.substr(from, to - from)) + "\n";
    from = to + 1;
  }
  return line;
}

}  // namespace

// A line per event, until interrupted.
int watch(const context& context, const look_arguments& what) {
  signal_inbox inbox;  // before any thread exists
  const auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  // Any name shows whether it answers.
  const std::string name = what.name.empty() ? "holdfast" : what.name;
  if (const auto problem = engine->first_contact(name)) return tell(*problem);
  const auto subscription = engine->client.observe(
      what.name, [as_json = what.json, all = what.all](const spi::store_event& event) {
        if (event.kind == spi::event_kind::renewed && !all) return;
        const auto at = std::chrono::system_clock::now();
        const bool printed = print(as_json ? json::line(json::of(event, at)) : line_of(event, at));
        // The reader of the pipe is gone: exit as if by SIGPIPE.
        if (!printed) ::_exit(exit_code::signalled + SIGPIPE);
      });
  if (!subscription) return engine->refused("cannot watch", "observe", subscription.error());
  return tell(ended_by_signal(inbox.wait_for_end(), "watching "));
}

// Checks the engine and its settings, a line each.
int doctor(const context& context, const look_arguments& what) {
  const auto to = find_address(context, memory_is::fine);
  if (!to) return tell(to.error());
  const auto checks = examine(context, *to);
  if (!checks) return tell(checks.error());
  std::string text;
  if (what.json) {
    text = json::line(json::of(*checks));
  } else {
    for (const spi::check& check : *checks) text += line_of(check);
  }
  const int printed = print_all(text);
  const bool failed = std::any_of(checks->begin(), checks->end(), [](const spi::check& check) {
    return check.state == spi::check::status::fail;
  });
  if (!failed) return printed;
  return tell(
      {exit_code::no, "a check failed (" + to->engine + ", probe, see the lines with fail)"});
}

// The functions of the Redis store, for administrators who load them by hand.
int redis_library() {
  const auto text = stores::redis_library();
  if (!text) return tell({exit_code::usage, text.error().detail});
  return print_all(*text);
}

namespace {

// `asked`: certain claims were asked for.
int nobody(const look_arguments& what, const engine& engine, bool asked) {
  return tell(
      {exit_code::no,
       asked ? "no holder of '" + what.name + "' has that claim; show lists them (" +
                   engine.to.engine + ", revoke, no such holder)"
             : "nobody holds '" + what.name + "' (" + engine.to.engine + ", revoke, no holder)"});
}

// Shows what would be taken away, and asks. True: yes.
bool confirmed(const std::vector<spi::holder>& holders) {
  std::cerr << holder_table(holders)
            << "Take it from this holder? Two may run until it notices. [y/N] " << std::flush;
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::vector<spi::holder> chosen(const spi::resource_state& state, const std::string& claim) {
  std::vector<spi::holder> left = state.holders;
  std::erase_if(left, [&](const spi::holder& one) { return !claim.empty() && one.claim != claim; });
  return left;
}

// `claims`: the claims that were shown.
int ask_first(const engine& engine, const look_arguments& what, std::vector<std::string>& claims) {
  const auto state = engine.client.inspect(what.name);
  if (!state) return engine.refused("cannot inspect '" + what.name + "'", "inspect", state.error());
  const auto holders = chosen(*state, what.claim);
  if (holders.empty()) return nobody(what, engine, !what.claim.empty());
  if (!confirmed(holders)) {
    return tell({exit_code::no, "nothing was released (you answered no)"});
  }
  claims.clear();
  for (const spi::holder& each : holders) claims.push_back(each.claim);
  return exit_code::ok;
}

int break_glass(const context& context, const look_arguments& what, spi::revocation how,
                const std::string& afterwards) {
  const bool ask = how == spi::revocation::force && !what.yes;
  if (ask && (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)) {
    return tell(
        usage("release asks for confirmation, and there is no terminal: use --yes", "release")
            .value());
  }
  auto engine = open_engine(context);
  if (!engine) return tell(engine.error());
  // Holders that came while the question was open are not covered by the answer.
  std::vector<std::string> claims{what.claim};
  if (ask) {
    const int answer = ask_first(*engine, what, claims);
    if (answer != exit_code::ok) return answer;
  }
  std::vector<spi::holder> all;
  for (const std::string& claim : claims) {
    const auto taken = engine->client.revoke(what.name, how, claim);
    if (!taken)
      return engine->refused("cannot take '" + what.name + "' away", "revoke", taken.error());
    all.insert(all.end(), taken->begin(), taken->end());
  }
  if (all.empty()) return nobody(what, *engine, ask || !what.claim.empty());
  note(afterwards);  // first: it is done, whether or not the answer can be printed
  return print_all(holder_table(all));
}

}  // namespace

int release(const context& context, const look_arguments& what) {
  return break_glass(context, what, spi::revocation::force,
                     "taken from the holders below; two may run until they notice, at their next "
                     "renewal (a third of the ttl) at the latest\n");
}

int revoke(const context& context, const look_arguments& what) {
  return break_glass(
      context, what, spi::revocation::safe,
      "no longer renewed: the holders below are notified, and nobody else is granted before "
      "their leases end\n");
}

}  // namespace holdfast::cli
