// holdfast show, ls and watch.
#include "cli/commands.hpp"
#include "cli/holder_table.hpp"
#include "cli/json.hpp"
#include "cli/number_text.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

namespace holdfast::cli {

// holdfast show: who holds a name, and who waits for it, in order.
int show(const context& context, const look_arguments& what) {
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  const auto client = connect(context, *to);
  if (!client) return tell(client.error());
  const auto state = client->inspect(what.name);
  if (!state) return tell(from_engine("cannot inspect it", to->engine, "inspect", state.error()));
  const auto now = std::chrono::system_clock::now();
  if (what.json) return print_all(json::resource(what.name, *state, now));
  std::string text;
  if (state->blocked_for) {
    text = "blocked by lock delay for " + to_text(*state->blocked_for) +
           ": a holder ended abnormally\n";
  } else if (state->holders.empty()) {
    text = "free\n";
  }
  text += holder_table(state->holders, now);
  text += waiter_table(state->waiters);
  return print_all(text);
}

// holdfast ls: names that have holders or waiters, or are blocked by a lock delay.
int ls(const context& context, const look_arguments& what) {
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  const auto client = connect(context, *to);
  if (!client) return tell(client.error());
  const auto all = client->list(what.name);
  if (!all) return tell(from_engine("cannot list", to->engine, "list", all.error()));
  if (what.json) return print_all(json::resources(*all));
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

std::string text_of(const spi::store_event& event, std::chrono::system_clock::time_point at) {
  std::string line = rfc3339(at) + "  " + std::string(name_of(event.kind));
  line.resize(std::max<std::size_t>(line.size(), 37), ' ');
  line += plain(event.name) + "  " + event.claim + "  " + std::string(name_of(event.mode));
  if (event.fence) line += "  fence " + std::to_string(event.fence->value());
  if (!event.payload.empty()) line += "  " + plain(event.payload);
  return line + "\n";
}

}  // namespace

// holdfast watch: a line per event, until interrupted.
int watch(const context& context, const look_arguments& what) {
  const auto to = find_address(context);
  if (!to) return tell(to.error());
  signal_inbox inbox;  // before any thread exists
  const auto client = connect(context, *to);
  if (!client) return tell(client.error());
  // Any name shows whether it answers.
  const std::string name = what.name.empty() ? "holdfast" : what.name;
  if (const auto problem = first_contact(*client, *to, name)) return tell(*problem);
  const auto subscription =
      client->observe(what.name, [json = what.json, all = what.all](const spi::store_event& event) {
        if (event.kind == spi::event_kind::renewed && !all) return;
        const auto at = std::chrono::system_clock::now();
        const bool printed = print(json ? json::event(event, at) : text_of(event, at));
        // The reader of the pipe has gone: as if SIGPIPE had ended us.
        if (!printed) ::_exit(exit_code::signalled + SIGPIPE);
      });
  if (!subscription) {
    return tell(from_engine("cannot watch", to->engine, "observe", subscription.error()));
  }
  const int number = inbox.wait_for_end();
  tell("watching ended by " + signal_name(number));
  return exit_code::signalled + number;
}

}  // namespace holdfast::cli
