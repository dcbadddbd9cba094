// What the checkers of a torture know of the run beforehand.
#pragma once

#include "sim/checker.hpp"
#include "torture/vocabulary.hpp"

namespace holdfast::torture {

struct rules {
  sim::facts facts;
  duration wake_bound{};
  duration order_margin{};
};

}  // namespace holdfast::torture
