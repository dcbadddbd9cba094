// What the command and its worker processes tell each other: lines of JSON over a socket, which are
// the worker's stdin and stdout. Not for others: it may change at any time.
//
//   command: the plan          worker: {"ready":true} or {"trouble":text,"code":n}
//   command: {"start":ns}      worker: the result, or the trouble
//   command: closes the socket: end now
#pragma once

#include "cli/bench/bench_arguments.hpp"
#include "cli/bench/histogram.hpp"
#include "cli/bench/traffic.hpp"
#include "cli/complaint.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct worker_plan {
  bench_arguments how;
  std::string url;
  std::optional<std::string> password;  // never on a command line or in an environment
  std::optional<std::string> password_file;
  std::optional<std::string> space;
  std::string name;         // what all locks of this run begin with
  std::uint32_t first = 0;  // number of this process's first thread
};

// The relay's descriptor in the worker.
inline constexpr int relay_file = 3;
// The first of it are not counted: connections, caches and scripts are new.
duration warm_up(duration length) noexcept;
std::size_t locks_of(const bench_arguments& how) noexcept;

struct worker_result {
  std::vector<std::uint64_t> grants;  // taken and given back within the time, by thread
  histogram acquire;                  // from the call to the grant
  histogram release;                  // from the call to the answer
  histogram hand_off;  // from the call that gives it back to the grant of one that waited
  duration processor{};
  std::uint64_t memory = 0;  // peak, resident, bytes
  std::optional<cli::traffic> traffic;
};

struct worker_message {
  bool ready = false;
  std::optional<complaint> trouble{};
  std::optional<worker_result> result{};
};

// One line each, with its end. Reading answers none for what is no such line.
std::string to_line(const worker_plan& plan);
std::optional<worker_plan> read_plan(const std::string& line);
std::string start_line(time_point start);
std::optional<time_point> read_start(const std::string& line);
std::string to_line(const worker_message& message);
std::optional<worker_message> read_message(const std::string& line);

// Lines from a descriptor.
//
// Not thread-safe.
class line_reader {
 public:
  explicit line_reader(int file) noexcept : file_(file) {}

  // Takes in what is there, waiting for it where the descriptor blocks. False: nothing more comes.
  bool fill();
  // The next whole line that was taken in, without its end.
  std::optional<std::string> next();
  // fill() until there is one. None: nothing more comes.
  std::optional<std::string> wait();

 private:
  static constexpr std::size_t longest = std::size_t{64} << 20;

  int file_;
  std::string text_;
};

// All of it, waiting as long as it takes. False: nobody reads.
bool write_all(int file, const std::string& text) noexcept;

}  // namespace holdfast::cli
