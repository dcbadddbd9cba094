// How much a test repeats.
#pragma once

#include <cstdlib>

namespace holdfast::test {

// `make test` wants the first, `make test-long` the second: it sets HOLDFAST_LONG.
template <class T>
T rounds(T usual, T in_a_long_run) {
  return std::getenv("HOLDFAST_LONG") == nullptr ? usual : in_a_long_run;
}

}  // namespace holdfast::test
