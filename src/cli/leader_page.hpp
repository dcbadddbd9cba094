// `holdfast elect --listen ADDR`: answers whether this instance leads, for sidecars and load balancers.
//
//   GET /leader   200 with the term while it leads, 503 otherwise
//   GET /healthz  200 while the program runs
//
// Thread-safe. Whether it leads is judged at each answer, by the clock, and no longer than until the lease's
// notice begins: when the answer is read the lease has not ended.
#pragma once

#include "cli/arguments.hpp"
#include "cli/command_lease.hpp"
#include "cli/complaint.hpp"

#include <memory>
#include <string>

namespace holdfast::cli {

class leader_page {
 public:
  // Listens; what is answered before lead() is 503. engine (122): the address cannot be used, or this build
  // has no HTTP.
  static outcome<std::unique_ptr<leader_page>> open(const listen_address& at, std::string name,
                                                    std::string id);
  virtual ~leader_page() = default;

  // `held` stays where it is until resign() has returned. `notice`: it leads until so long before the end.
  virtual void lead(const command_lease& held, duration notice) = 0;
  // No 200 any more.
  virtual void resign() noexcept = 0;
};

}  // namespace holdfast::cli
