// One renewal that goes to the servers in parts: the last part to be answered completes it.
#pragma once

#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::redis {

// Thread-safe where each answer is written by one part only. `missing` begins at one, for who sends the parts:
// it calls arrived() when all are sent.
struct renewing {
  renewing(std::size_t claims, spi::completion<std::vector<spi::renewal>> completion)
      : answers(claims), done(std::move(completion)) {}

  void arrived() {
    if (missing.fetch_sub(1, std::memory_order_acq_rel) == 1) done(std::move(answers));
  }

  std::vector<spi::renewal> answers;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

}  // namespace holdfast::redis
