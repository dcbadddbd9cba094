// A record of a torture in words, for people who look at a slice of its history.
#pragma once

#include "sim/record.hpp"

#include <string>

namespace holdfast::torture {

// "   0.171867  client 1  hold 2 is granted, fence 6"
std::string tell(const sim::record& line);

}  // namespace holdfast::torture
