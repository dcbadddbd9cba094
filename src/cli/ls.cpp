// holdfast ls: names that have holders or waiters, or are blocked by a lock delay.
#include "cli/commands.hpp"
#include "cli/duration_text.hpp"
#include "cli/json.hpp"
#include "cli/plain_text.hpp"
#include "cli/printer.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace holdfast::cli {

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

}  // namespace holdfast::cli
