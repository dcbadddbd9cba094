// What is to be measured: `holdfast bench`'s options, understood.
#pragma once

#include "cli/complaint.hpp"
#include "cli/raw_arguments.hpp"

#include <holdfast/clock.hpp>

#include <cstdint>
#include <string>

namespace holdfast::cli {

enum class lock_choice : std::uint8_t {
  same,  // one for all
  own,   // one for each thread
  zipf,  // of a thousand, the n-th n times as seldom as the first
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
  // Exclusive: who gets it next follows exactly one that had it.
  [[nodiscard]] bool hands_over() const noexcept {
    return locks != lock_choice::own && (mode == lock_kind::mutex || mode == lock_kind::fair);
  }
};

// As they are written on the command line: "same", "rw:90".
std::string to_text(lock_choice locks);
std::string mode_text(const bench_arguments& how);

// The options of bench.
outcome<void> read_bench(const raw_arguments& raw, bench_arguments& into);

}  // namespace holdfast::cli
