// What all processes of a run share: whether it is over, and resources that check fences, as a
// database with a fence column would.
#pragma once

#include <holdfast/clock.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>

namespace holdfast::torture {

// Thread-safe, across processes. A process that is stopped or killed within a call blocks nobody.
class board {
 public:
  static constexpr std::size_t most_resources = 64;

  // Made by the first. Throws std::system_error.
  explicit board(const std::filesystem::path& file);
  board(const board&) = delete;
  board& operator=(const board&) = delete;
  ~board();

  void finish() noexcept;
  [[nodiscard]] bool over() const noexcept;
  // Until it is, at most so long; whether it is.
  bool wait_over(duration limit) const noexcept;

  // A write to a resource. False: refused, it has seen a greater fence.
  bool write(std::size_t resource, std::uint64_t fence) noexcept;

 private:
  struct page;
  page* page_ = nullptr;
};

}  // namespace holdfast::torture
