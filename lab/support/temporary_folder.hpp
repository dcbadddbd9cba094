// A folder for one test or run, removed afterwards.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace holdfast::test {

// For a server whose files need not outlive the machine: in memory where there is room for several of
// them, since a database writes and syncs hundreds of files before it can be asked anything. TMPDIR, where
// it is set, decides.
inline std::filesystem::path place_in_memory() {
  constexpr const char* memory = "/dev/shm";
  constexpr std::uintmax_t room = 4ULL << 30;
  std::error_code unknown;
  const auto there = std::filesystem::space(memory, unknown);
  const bool usable = !unknown && there.available >= room && ::access(memory, W_OK | X_OK) == 0;
  return usable && std::getenv("TMPDIR") == nullptr ? memory
                                                    : std::filesystem::temp_directory_path();
}

class temporary_folder {
 public:
  // Also removes what processes that were killed more than an hour ago left there.
  explicit temporary_folder(
      const std::filesystem::path& in = std::filesystem::temp_directory_path(),
      const std::string& prefix = "holdfast-test-") {
    remove_abandoned(in, prefix);
    std::string pattern = in / (prefix + std::to_string(::getpid()) + "-XXXXXX");
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp: " + pattern);
    path_ = pattern;
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  static void remove_abandoned(const std::filesystem::path& in, const std::string& prefix) {
    std::error_code ignored;
    const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
    for (std::filesystem::directory_iterator each(in, ignored), end; each != end;
         each.increment(ignored)) {
      const std::string name = each->path().filename();
      if (!name.starts_with(prefix)) continue;
      const int owner = std::atoi(name.c_str() + prefix.size());
      if (owner <= 0 || ::kill(owner, 0) == 0 || errno != ESRCH) continue;
      if (std::filesystem::last_write_time(each->path(), ignored) > old || ignored) continue;
      std::filesystem::remove_all(each->path(), ignored);
    }
  }

  std::filesystem::path path_;
};

}  // namespace holdfast::test
