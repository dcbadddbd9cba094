// holdfast watch: a line per event, until interrupted.
#include "cli/commands.hpp"
#include "cli/json.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"
#include "cli/signal_inbox.hpp"

#include <chrono>
#include <csignal>
#include <string>

namespace holdfast::cli {

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
