// holdfast show: who holds a name, and who waits for it, in order.
#include "cli/commands.hpp"
#include "cli/duration_text.hpp"
#include "cli/holder_table.hpp"
#include "cli/json.hpp"
#include "cli/printer.hpp"

#include <chrono>

namespace holdfast::cli {

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

}  // namespace holdfast::cli
