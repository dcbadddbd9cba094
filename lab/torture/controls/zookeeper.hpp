// A broken lock on ZooKeeper; control.cpp says what it shows.
#pragma once

#include "torture/controls/servers.hpp"
#include "torture/story.hpp"

namespace holdfast::torture::controls {

story node_without_its_owner(servers& all);

}  // namespace holdfast::torture::controls
