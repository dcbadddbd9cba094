// The command line taken apart into words and options, not yet understood. Only raw_arguments.cpp
// knows the library that does it.
#pragma once

#include "cli/complaint.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct raw_arguments {
  std::string command;  // "run", "multi run", "demo flash-sale"; empty: none was given
  bool help = false;
  bool version = false;

  std::vector<std::string> urls;  // several for serve only
  std::optional<std::string> space, password_file, log_level;
  std::optional<std::string> wait, ttl, permits, max, grace, at_least, at_most, lock_delay,
      busy_exit_code;
  std::optional<std::string> id, claim;
  std::optional<std::string> listen, token, token_file;
  std::vector<std::string> hosts;
  bool allow_revoke = false;
  std::optional<std::string> buyers, stock, processes, locks;
  std::optional<std::string> threads, choice, mode, hold, length;
  std::optional<std::string> start, clients, workload, faults, seed, json_file, report;
  bool fair = false, shared = false, no_renew = false, quiet = false, pass_url = false,
       pass_notify = false;
  bool json = false, names = false, force = false, yes = false, all = false;

  std::vector<std::string> words;  // before the first --
  bool split = false;              // there was one
  std::vector<std::string> tail;   // after it, untouched
};

// Unknown options, commands and missing values are usage errors. What was given as a value is never
// repeated: it may be a password. `arguments`: without the program's own name.
outcome<raw_arguments> take_apart(std::vector<std::string> arguments);

}  // namespace holdfast::cli
