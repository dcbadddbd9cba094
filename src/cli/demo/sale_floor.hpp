// One process of a sale: its buyers, each a thread, and the lock that they buy under.
#pragma once

#include "cli/demo/sale_board.hpp"
#include "cli/demo/stock_file.hpp"

#include <holdfast/client.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace holdfast::cli {

struct floor_plan {
  std::string lock;  // none, mutex, fair, rw, semaphore
  std::string name;  // of the resource
  std::uint32_t first = 0;
  std::uint32_t buyers = 0;
};

// Calls `start` when all buyers stand ready, which returns when the sale is open. Returns when the
// last buyer has left. `client`: none for the sale without a lock.
void hold_sale(const floor_plan& plan, const std::optional<client>& client, const stock_file& stock,
               const sale_board& board, const std::function<void()>& start);

}  // namespace holdfast::cli
