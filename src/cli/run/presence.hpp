// What others learn while run, elect and multi run wait and hold: the service manager (ready,
// status, watchdog), and clients that query elect's page.
#pragma once

#include "cli/arguments.hpp"
#include "cli/http/server.hpp"
#include "cli/output.hpp"
#include "cli/run/guard.hpp"
#include "cli/run/service_manager.hpp"

#include <holdfast/client.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::cli {

// `holdfast elect --listen ADDR`: answers whether this instance leads, for sidecars and load balancers.
//
//   GET /leader   200 with the term while it leads, 503 otherwise
//   GET /healthz  200 while the program runs
//
// Whether it leads is judged at each answer, by the clock, and no longer than until the lease's notice begins: when the
// answer is read the lease has not ended. Thread-safe.
class leader_page {
 public:
  leader_page(std::string name, std::string id);
  leader_page(const leader_page&) = delete;
  leader_page& operator=(const leader_page&) = delete;
  ~leader_page();

  // Called once. Until lead() the answer is 503. engine (122): the address cannot be used, or this
  // build has no HTTP.
  outcome<void> listen(const listen_address& at);

  // `held` stays where it is until resign() has returned. `notice`: how long before the end it
  // stops leading.
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

// Used by the main thread, after the signals were blocked: it has threads of its own.
class presence {
 public:
  presence(const hold_arguments& how, std::string what);
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;
  ~presence();

  // Opens the page, where one is asked for.
  outcome<void> open();
  // It is queued. That makes a candidate ready; a job is ready only once it runs, and reports that
  // it is still waiting, so that no start-up limit ends it.
  void waiting(const client& client);
  // The command runs under `held`, which stays where it is until ending().
  void holding(const command_lease& held);
  // The lock is about to be released, or is lost.
  void ending(const std::string& status) noexcept;

 private:
  void work(const std::stop_token& stop);
  [[nodiscard]] std::string line_text(const client& client) const;
  [[nodiscard]] duration watchdog_beat() const;

  const hold_arguments& how_;
  const std::string what_;
  const service_manager manager_;
  std::optional<leader_page> page_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<client> seen_by_;  // guarded by mutex_; while it waits
  std::jthread heart_;             // last: uses all of the above
};

}  // namespace holdfast::cli
