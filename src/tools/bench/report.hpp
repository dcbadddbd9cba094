// What a measurement found out, for people and for programs. What could not be measured is "-" for
// people and null for programs, never a zero.
#pragma once

#include "tools/bench/workload.hpp"

#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

struct bench_report {
  bench_arguments how;
  std::string engine;
  duration counted{};  // without the warm-up
  std::uint64_t grants = 0;
  std::vector<std::uint64_t> grants_by_thread{};
  double fairness = 1;  // Jain's index over the threads
  worker_result all{};  // of all processes; memory: of the largest
  std::optional<duration> server_processor{};
  std::optional<std::uint64_t> server_memory{};

  [[nodiscard]] double per_second() const noexcept;
};

struct server_use {
  std::optional<server_process::use> before;
  std::optional<server_process::use> after;
};

bench_report make_report(const bench_arguments& how, const std::string& engine,
                         const bench_board& board, const server_use& server);

// 1: all had the same; 1 / n: one had everything. 1 for nobody and for nothing.
double jain_index(const std::vector<std::uint64_t>& shares) noexcept;

std::string report_text(const bench_report& report);
std::string report_json(const bench_report& report);  // one line, keys are only ever added

}  // namespace holdfast::cli
