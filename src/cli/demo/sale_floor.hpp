// One process of a sale: its buyers, each a thread, and the lock that they buy under.
#pragma once

#include "cli/demo/stock_file.hpp"

#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

// What the processes of a sale share: a score per buyer, and whether anything went wrong. Lives in
// memory that all of them map.
enum class buyer_end : std::uint8_t { none, bought, sold_out, too_busy, failed };

struct buyer_score {
  std::atomic<buyer_end> end{buyer_end::none};
  bool granted = false;  // written before `end`
  duration waited{};
  time_point at{};
};

// Thread-safe and process-safe: every buyer writes its own score once.
class sale_board {
 public:
  explicit sale_board(std::size_t buyers);  // throws std::system_error
  sale_board(const sale_board&) = delete;
  sale_board& operator=(const sale_board&) = delete;
  ~sale_board();

  [[nodiscard]] std::span<buyer_score> scores() const noexcept;
  [[nodiscard]] std::size_t finished() const noexcept;

  // The first trouble wins.
  void complain(std::string_view text) const noexcept;
  [[nodiscard]] std::string trouble() const;

 private:
  struct shared;

  std::size_t buyers_;
  std::size_t bytes_;
  shared* shared_;
};

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
