// One run: clients are started, faults happen as planned, everything is healed, all clients end,
// and what happened is reported.
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
  std::string program;  // the path of the clients' program
};

struct progress {
  duration passed{};
  std::size_t grants = 0;
  std::size_t faults = 0;
  std::string phase;
};

// Called several times a second, on the caller's thread. False: give up; what was seen so far is
// reported.
using onlooker = std::function<bool(const progress&)>;

// The run could not be carried out: no answer from the engine, a server that does not come back.
class trouble : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Throws trouble. The testbed must have been made on the same thread.
run_record hold(const setup& how, testbed& engine, const onlooker& seen);

// The workloads of the list, by name, that the engine does not support. Throws trouble.
struct abilities {
  std::string engine;
  std::vector<workload> workloads;
};
abilities ask(const std::string& url, const std::string& password, const std::string& space);

}  // namespace holdfast::torture
