// All guarantees of a world, one checker each.
#pragma once

#include "sim/history.hpp"

namespace holdfast::sim {

void watch_all(history& log, const facts& world);

}  // namespace holdfast::sim
