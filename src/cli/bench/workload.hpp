// The threads of one process, each taking and giving back locks until the time is over.
#pragma once

#include "cli/bench/bench_message.hpp"
#include "cli/bench/relay.hpp"

#include <holdfast/client.hpp>

#include <memory>
#include <optional>
#include <string>

namespace holdfast::cli {

// Thread-safe but for the order of its calls: start(), then take() once. States: ready, running,
// over.
class workload {
 public:
  // Starts the threads, which wait. Throws std::system_error where there can be no more.
  workload(const worker_plan& plan, const client& client, const relay& relay);
  workload(const workload&) = delete;
  workload& operator=(const workload&) = delete;
  // Joins the threads: whoever destroys one that is not over closes the client first.
  ~workload();

  void start(time_point when);
  // Waits for all threads. None: something went wrong, see trouble().
  std::optional<worker_result> take();
  [[nodiscard]] bool failed() const noexcept;
  [[nodiscard]] std::string trouble() const;

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace holdfast::cli
