// What one client process is sent out with: a file that only its user can read, since the URL may
// hold a password.
#pragma once

#include "torture/plan.hpp"

#include <filesystem>
#include <string>

namespace holdfast::torture {

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

}  // namespace holdfast::torture
