// Broken locks on several Redis servers, and in a database; control.cpp says
// what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/run_record.hpp"

namespace holdfast::torture::controls {

run_record replica_promoted_too_early(servers& all);
run_record quorum_of_the_reachable(servers& all);
run_record fence_at_any_majority(servers& all);
run_record semaphore_under_majority(servers& all);
run_record row_that_ends_by_the_clients_clock(servers& all);

}  // namespace holdfast::torture::controls
