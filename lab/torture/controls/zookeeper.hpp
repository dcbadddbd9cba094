// Broken locks on ZooKeeper; control.cpp says what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/run_record.hpp"

namespace holdfast::torture::controls {

run_record node_without_its_owner(servers& all);
run_record lease_dated_by_pings(servers& all);

}  // namespace holdfast::torture::controls
