// holdfast elect: runs the command while leader.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"

#include <holdfast/election.hpp>

#include <utility>

namespace holdfast::cli {

int elect(const context& context, const hold_arguments& asked) {
  hold_arguments how = asked;
  if (how.id.empty()) how.id = host_and_pid();
  return run_holding(context, how, "the election '" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) -> result<command_lease> {
                       election campaign(client, how.names.front(), how.id, how.lock);
                       auto term = campaign.campaign(how.acquire, std::move(token));
                       if (!term) return tl::unexpected(std::move(term.error()));
                       return command_lease(std::move(*term));
                     });
}

}  // namespace holdfast::cli
