// What others are told while run, elect and multi run wait and hold: the service manager (ready, status,
// watchdog), and clients that ask elect's page.
#pragma once

#include "cli/arguments.hpp"
#include "cli/output.hpp"
#include "cli/run/leader_page.hpp"
#include "cli/run/service_manager.hpp"

#include <holdfast/client.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::cli {

// Used by the main thread, after the signals were blocked: it has threads of its own.
class presence {
 public:
  presence(const hold_arguments& how, std::string what);
  presence(const presence&) = delete;
  presence& operator=(const presence&) = delete;
  ~presence();

  // Opens the page, where one is asked for.
  outcome<void> open();
  // It is in line. A candidate is ready by that; a job is not before it runs, and says that it goes on
  // waiting, so that no start-up limit ends it.
  void waiting(const client& client);
  // The command runs under `held`, which stays where it is until ending().
  void holding(const command_lease& held);
  // The lock is about to be given back, or is lost.
  void ending(const std::string& status) noexcept;

 private:
  void work(const std::stop_token& stop);
  [[nodiscard]] std::string line_text(const client& client) const;

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
