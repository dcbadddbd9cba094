// The files that the processes of a run share: what each is sent out with, what it records, and the board.
#pragma once

#include "sim/record.hpp"
#include "torture/plan.hpp"

#include <holdfast/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace holdfast::torture {

// The assignment of one client process: a file that only its user can read, since the URL may
// contain a password.
struct assignment {
  std::string url;
  std::string password;
  std::string space;
  std::string prefix;        // of all names of this run
  std::int32_t process = 0;  // its number, new for every process
  std::uint32_t client = 0;  // whose part it plays
  std::int64_t started = 0;  // of the run, by holdfast::clock, in ns
  plan wanted;               // without the schedule

  [[nodiscard]] time_point start() const { return time_point(duration(started)); }
};

// In the folder of the run.
std::filesystem::path assignment_file(const std::filesystem::path& folder, std::int32_t process);
std::filesystem::path record_file(const std::filesystem::path& folder, std::int32_t process);
std::filesystem::path board_file(const std::filesystem::path& folder);

// Throw std::runtime_error.
void save(const assignment& one, const std::filesystem::path& folder);
assignment load_assignment(const std::filesystem::path& folder, std::int32_t process);

// A file mapped into memory that processes share. Sparse: what is not written takes no space. A new file reads as zeros,
// and that is what an empty page looks like: nothing is constructed in it.
template <class Page>
class mapped_file {
 public:
  // Made by the first. Throws std::system_error.
  explicit mapped_file(const std::filesystem::path& file);
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file();

  Page* operator->() const noexcept { return page_; }

 private:
  Page* page_ = nullptr;
};

// What all processes of a run share: whether it is over, and resources that check fences, as a
// database with a fence column would.
//
// Thread-safe, across processes. A process that is stopped or killed within a call blocks nobody.
class board {
 public:
  static constexpr std::size_t most_resources = 64;

  // Made by the first. Throws std::system_error.
  explicit board(const std::filesystem::path& file);
  ~board();

  void finish() noexcept;
  [[nodiscard]] bool over() const noexcept;
  // Waits until it is over, for at most this long; returns whether it is.
  bool wait_over(duration limit) const noexcept;

  // A write to a resource. False: refused, it has seen a greater fence.
  bool write(std::size_t resource, std::uint64_t fence) noexcept;

 private:
  struct page;
  mapped_file<page> page_;
};

// One hold of a thread, kept up to date while it is valid.
struct hold_slot {
  std::atomic<std::int32_t> hold{0};   // 0: none
  std::atomic<std::int64_t> until{0};  // ns since the start of the run
};

// The history of one client process: records in a file that is mapped into memory, so that they
// survive a SIGKILL, and cost no system call. Also what the process holds at this moment, for its
// killer.
//
// add() and slots may be used from several threads and are read by another process.
class recorder {
 public:
  static constexpr std::size_t slots = 16;
  static constexpr std::size_t most_records = std::size_t{1} << 20U;

  // Throws std::system_error.
  explicit recorder(const std::filesystem::path& file);
  ~recorder();

  // Room for one more round of every thread. Stopping in time keeps the history complete.
  [[nodiscard]] bool room() const noexcept;
  // False: full. Nothing is overwritten.
  bool add(const sim::record& line) noexcept;
  [[nodiscard]] hold_slot& slot(std::size_t which) noexcept;

  // The records of the process that writes there, even while it still does.
  [[nodiscard]] std::vector<sim::record> read() const;
  [[nodiscard]] std::size_t count(sim::what kind, std::size_t& from) const noexcept;

 private:
  struct page;
  mapped_file<page> page_;
};

}  // namespace holdfast::torture
