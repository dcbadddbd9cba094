#include "explore/scenario.hpp"

#include <algorithm>

namespace holdfast::explore {

using std::chrono::milliseconds;
using std::chrono::seconds;

sim::plan scenario::to_plan() const {
  sim::plan made;
  made.seed = 1;
  made.clients = static_cast<std::uint32_t>(roles.size());
  made.resources.push_back({kind, max, 1000});
  made.ttl = lease;
  made.lock_delay = lock_delay;
  made.limit.waiter_lease = seconds(7);  // three re-checks and a lease
  made.retry.limit = milliseconds(200);
  // Messages take no time, and a new connection takes a fixed time: nothing is left to chance.
  made.normal.shortest_reconnect = milliseconds(1);
  made.normal.longest_reconnect = milliseconds(1);
  made.server.dialect = dialect;
  made.server.timers = server_timers;
  made.server.rules.waiter_lease = made.limit.waiter_lease;
  made.store.dialect = dialect;
  // Clocks that start at the same moment show different times.
  made.server_clock = sim::node_clock(seconds(1000), server_rate);
  for (std::size_t i = 0; i < roles.size(); ++i) {
    made.client_clocks.emplace_back(seconds(100 * (i + 1)), roles[i].clock_rate);
  }
  return made;
}

const scenario* scenario_named(std::string_view name) noexcept {
  const auto& all = all_scenarios();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const scenario& each) { return each.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace holdfast::explore
