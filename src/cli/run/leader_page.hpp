// `holdfast elect --listen ADDR`: answers whether this instance leads, for sidecars and load balancers.
//
//   GET /leader   200 with the term while it leads, 503 otherwise
//   GET /healthz  200 while the program runs
//
// Whether it leads is judged at each answer, by the clock, and no longer than until the lease's notice begins: when the
// answer is read the lease has not ended.
#pragma once

#include "cli/arguments.hpp"
#include "cli/http/server.hpp"
#include "cli/output.hpp"
#include "cli/run/guard.hpp"

#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace holdfast::cli {

// Thread-safe.
class leader_page {
 public:
  leader_page(std::string name, std::string id);
  leader_page(const leader_page&) = delete;
  leader_page& operator=(const leader_page&) = delete;
  ~leader_page();

  // Once. What is answered before lead() is 503. engine (122): the address cannot be used, or this build has no HTTP.
  outcome<void> listen(const listen_address& at);

  // `held` stays where it is until resign() has returned. `notice`: it leads until so long before the end.
  void lead(const command_lease& held, duration notice);
  // No 200 any more.
  void resign() noexcept;

 private:
  [[nodiscard]] http::response answer(const http::request& asked) const;
  void tell_leader(http::response& into) const;
  [[nodiscard]] duration time_left() const;

  const std::string name_;
  const std::string id_;
  mutable std::mutex mutex_;
  const command_lease* held_ = nullptr;   // guarded by mutex_
  duration notice_{0};                    // guarded by mutex_
  std::unique_ptr<http::server> server_;  // since listen()
  std::jthread worker_;                   // last: runs the server
};

}  // namespace holdfast::cli
