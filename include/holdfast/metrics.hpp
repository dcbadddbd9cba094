// What clients count: acquisitions, waits, holds, losses, renewals, round trips. No HTTP: write the text
// where your service already answers scrapes.
//
//   auto numbers = std::make_shared<holdfast::metrics>();
//   auto client = holdfast::client::open(url, {.metrics = numbers});
//   ...
//   answer("text/plain; version=0.0.4", numbers->prometheus_text());
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {

struct metrics_options {
  // On every sample, e.g. {{"server", "db1"}}: tells two servers of one engine apart. Each name
  // once, [a-zA-Z_][a-zA-Z0-9_]*, and none that metrics uses itself.
  std::vector<std::pair<std::string, std::string>> labels{};
  // How many locks have their name as a label, per engine; later ones are counted as "other". 0: no
  // such label. At most most_names: each name makes about fifty series.
  std::size_t names = 0;
};

// Thread-safe. A client counts in place, with atomic additions; only the first use of a name that
// becomes a label takes a lock and allocates. docs/metrics.md has the list.
class metrics {
 public:
  static constexpr std::size_t most_names = 1'000;
  // Elections always have their name as a label; those beyond this number are not reported.
  static constexpr std::size_t most_elections = 64;

  // Throws lock_error(invalid) if the options are wrong.
  explicit metrics(metrics_options options = {});
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;
  ~metrics();

  // The exposition format of Prometheus, version 0.0.4. Leaves out what is not known: an engine
  // that has neither answered nor failed yet, a primitive that was not used.
  [[nodiscard]] std::string prometheus_text() const;

  // For the clients of this library.
  struct state;
  [[nodiscard]] const std::shared_ptr<state>& inside() const noexcept { return state_; }

 private:
  const std::shared_ptr<state> state_;
};

}  // namespace holdfast
