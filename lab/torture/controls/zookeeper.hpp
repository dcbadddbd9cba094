// Broken locks on ZooKeeper; control.cpp says what each shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/story.hpp"

namespace holdfast::torture::controls {

story node_without_its_owner(servers& all);
story lease_dated_by_pings(servers& all);

}  // namespace holdfast::torture::controls
