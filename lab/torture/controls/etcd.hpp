// Broken locks on etcd; control.cpp says what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/run_record.hpp"

namespace holdfast::torture::controls {

run_record command_that_outlives_its_lease(servers& all);

}  // namespace holdfast::torture::controls
