// What the processes of a sale share: a score per buyer, and whether anything went wrong. Lives in
// memory that all of them map.
#pragma once

#include <holdfast/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::cli {

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

}  // namespace holdfast::cli
