// What completions, tasks and callbacks are.
#pragma once

#include <holdfast/move_only_function.hpp>

namespace holdfast::spi {

template <class Signature>
using function = move_only_function<Signature>;

}  // namespace holdfast::spi
