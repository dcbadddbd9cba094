// The command line, parsed and checked as far as possible without an engine.
#pragma once

#include "cli/output.hpp"
#include "torture/vocabulary.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/options.hpp>

#include <tl/expected.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Where a server of the program listens: HOST:PORT.
struct listen_address {
  std::string host;
  std::uint16_t port = 0;
};

// "127.0.0.1:4040", "[::1]:4040", "localhost:0". The error is the end of the sentence "--listen ...".
tl::expected<listen_address, std::string> parse_listen_address(const std::string& text);
std::string to_text(const listen_address& at);
complaint cannot_listen(const listen_address& at, const std::string& why);

enum class log_level : std::uint8_t { off, error, warn, info, debug };

struct global_arguments {
  std::optional<std::string> url;  // the first
  std::optional<std::string> space;
  std::optional<std::string> password_file;
  log_level level = log_level::warn;
};

// run, elect and multi run: something to hold, and something to run meanwhile. acquire: the former.
struct hold_arguments {
  lock_options lock;  // its notice is the grace
  acquire_options acquire;
  duration grace{};
  duration at_least{0};
  bool shared = false;
  std::optional<std::uint32_t> max;  // a semaphore
  std::uint32_t permits = 1;
  int busy_exit_code = exit_code::busy;
  bool quiet = false;     // says nothing of a lock that is busy
  bool pass_url = false;  // the command gets the URL of the engine
  bool pass_notify =
      false;  // the command tells the service manager that it is ready, instead of us
  bool elects = false;
  std::optional<listen_address> listen;  // elect: where its page is
  std::string id;                        // elect
  std::vector<std::string> names;
  std::vector<std::string> command;
};

// How long before the end of validity the child must be dead: a quarter of a very short lease.
duration kill_margin(duration ttl) noexcept;

// renew, and release of a lease that was detached.
struct token_arguments {
  std::string token;                      // as it was given; empty: in the file
  std::optional<std::string> token_file;  // also of acquire: where its token goes
  duration ttl{0};                        // renew; zero: what it was acquired with
  bool json = false;                      // acquire

  [[nodiscard]] bool given() const noexcept { return !token.empty() || token_file; }
};

struct latch_arguments {
  enum class verb : std::uint8_t { set, down, wait, count };
  std::string name;
  verb what = verb::count;
  std::uint32_t count = 1;
  std::string id;
  acquire_options wait;
};

// ls, show, release, revoke, watch, doctor.
struct look_arguments {
  std::string name;  // or a prefix; may be empty where the command allows it
  std::string claim;
  bool json = false;
  bool names = false;
  bool force = false;
  bool yes = false;
  bool all = false;
};

struct serve_arguments {
  std::vector<std::string> urls;  // as they were given: URL or NAME=URL; none: the default one
  listen_address listen{"127.0.0.1", 9464};
  std::vector<std::string> hosts;
  std::optional<std::string> token_file;
  bool allow_revoke = false;
};

struct sale_arguments {
  std::uint32_t buyers = 1000;
  std::uint32_t stock = 200;
  std::uint32_t processes = 4;
  std::vector<std::string> locks{"none", "mutex", "fair", "rw", "semaphore"};
};

enum class lock_choice : std::uint8_t {
  same,  // one for all
  own,   // one for each thread
  zipf,  // one of a thousand, the n-th a factor n less often than the first
};

enum class lock_kind : std::uint8_t { mutex, fair, rw, semaphore };

struct bench_arguments {
  std::uint32_t threads = 1;  // in each process
  std::uint32_t processes = 1;
  lock_choice locks = lock_choice::own;
  lock_kind mode = lock_kind::mutex;
  std::uint32_t reads = 90;   // of a hundred, with rw
  std::uint32_t permits = 8;  // with semaphore
  duration hold{0};
  duration length = std::chrono::seconds(3);
  bool json = false;

  [[nodiscard]] std::uint32_t all_threads() const noexcept { return threads * processes; }
  // Exclusive: the next holder follows exactly one previous holder.
  [[nodiscard]] bool hands_over() const noexcept {
    return locks != lock_choice::own && (mode == lock_kind::mutex || mode == lock_kind::fair);
  }
};

// As they are written on the command line: "same", "rw:90".
std::string to_text(lock_choice locks);
std::string mode_text(const bench_arguments& how);

struct torture_arguments {
  enum class verb : std::uint8_t { run, check, replay, client };
  verb what = verb::run;
  std::string file;          // of check and replay; the folder of client
  std::int32_t process = 0;  // of client
  std::string start;         // the engine to start; empty: the one at the URL
  std::optional<std::uint32_t> clients;
  std::optional<duration> length;
  std::optional<duration> ttl;
  std::vector<torture::workload> workloads;           // empty: all that the engine supports
  std::optional<std::vector<torture::fault>> faults;  // none: all possible ones
  std::optional<std::uint64_t> seed;
  std::string json;    // where to keep the history
  std::string report;  // where to put the page
};

struct arguments {
  std::string command;  // "run", "multi run", "demo flash-sale"; empty: none was given
  bool help = false;    // nothing else is understood then
  bool version = false;
  global_arguments global;
  hold_arguments hold;
  token_arguments token;
  latch_arguments latch;
  look_arguments look;
  serve_arguments serve;
  sale_arguments sale;
  bench_arguments bench;
  torture_arguments torture;
};

// `words`: without the program's own name. What was given as a value is never repeated in an error: it may be a
// password.
outcome<arguments> read_arguments(std::vector<std::string> words);

}  // namespace holdfast::cli
