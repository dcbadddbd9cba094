// The history of one client process: records in a file that is mapped into memory, so that they
// survive a SIGKILL, and cost no system call. Also what the process believes at this moment, for
// the one who kills it.
#pragma once

#include "sim/record.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace holdfast::torture {

// One hold of a thread, kept up to date while it is valid.
struct hold_slot {
  std::atomic<std::int32_t> hold{0};   // 0: none
  std::atomic<std::int64_t> until{0};  // ns since the start of the run
};

// add() and slots may be used from several threads and are read by another process.
class recorder {
 public:
  static constexpr std::size_t slots = 16;
  static constexpr std::size_t most_records = std::size_t{1} << 20U;

  // Throws std::system_error.
  explicit recorder(const std::filesystem::path& file);
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;
  ~recorder();

  // For a whole round more, of every thread. Who stops in time leaves a history that is whole.
  [[nodiscard]] bool room() const noexcept;
  // False: full. Nothing is overwritten.
  bool add(const sim::record& line) noexcept;
  [[nodiscard]] hold_slot& slot(std::size_t which) noexcept;

  // Of the process that wrote there, also while it still does.
  [[nodiscard]] std::vector<sim::record> read() const;
  [[nodiscard]] std::size_t count(sim::what kind, std::size_t& from) const noexcept;

 private:
  struct page;
  page* page_ = nullptr;
};

}  // namespace holdfast::torture
