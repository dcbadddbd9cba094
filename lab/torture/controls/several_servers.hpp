// Broken locks on several Redis servers, and in a database; control.cpp says
// what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/story.hpp"

namespace holdfast::torture::controls {

story replica_promoted_too_early(servers& all);
story quorum_of_the_reachable(servers& all);
story fence_at_any_majority(servers& all);
story semaphore_under_majority(servers& all);
story row_that_ends_by_the_clients_clock(servers& all);

}  // namespace holdfast::torture::controls
