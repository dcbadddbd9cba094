// One run: clients are started, faults happen as planned, everything is healed, everybody goes home,
// and what happened is told.
#pragma once

#include "torture/plan.hpp"
#include "torture/run_record.hpp"
#include "torture/testbed.hpp"

#include <functional>
#include <string>

namespace holdfast::torture {

struct setup {
  plan wanted;  // with its schedule
  std::string password;
  std::string space;
  std::string program;  // what the clients are; its path
};

struct progress {
  duration passed{};
  std::size_t grants = 0;
  std::size_t faults = 0;
  std::string phase;
};

// Called some times a second, on the caller's thread. False: give up; what was seen is told.
using onlooker = std::function<bool(const progress&)>;

// The run could not be held: no answer from the engine, a server that does not come back.
class trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws trouble. The testbed must have been made on the same thread.
run_record hold(const setup& how, testbed& engine, const onlooker& seen);

// What the engine cannot do: workloads out of the list, by their names. Throws trouble.
struct abilities {
  std::string engine;
  std::vector<workload> workloads;
};
abilities ask(const std::string& url, const std::string& password, const std::string& space);

}  // namespace holdfast::torture
