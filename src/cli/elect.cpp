// holdfast elect: runs the command while leader.
#include "cli/commands.hpp"
#include "cli/hold_run.hpp"

#include <holdfast/election.hpp>

#include <utility>

namespace holdfast::cli {

int elect(const context& context, const hold_arguments& how) {
  const std::string id = how.id.empty() ? host_and_pid() : how.id;
  return run_holding(context, how, "the election '" + how.names.front() + "'",
                     [&](const client& client, std::stop_token token) -> result<command_lease> {
                       election campaign(client, how.names.front(), id, how.lock);
                       auto term = campaign.campaign(how.acquire, std::move(token));
                       if (!term) return tl::unexpected(std::move(term.error()));
                       return command_lease(std::move(*term));
                     });
}

}  // namespace holdfast::cli
