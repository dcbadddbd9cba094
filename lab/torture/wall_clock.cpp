#include "torture/wall_clock.hpp"

#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::torture {

namespace fs = std::filesystem;

std::optional<fs::path> shifted_clock_library() {
  std::error_code none;
  const fs::path folder = fs::read_symlink("/proc/self/exe", none).parent_path();
  for (const char* place : {"holdfast_clock.so", HOLDFAST_CLOCK_LIBRARY}) {
    const fs::path found = (folder / place).lexically_normal();
    if (!folder.empty() && fs::exists(found, none)) return found;
  }
  return std::nullopt;
}

std::vector<std::string> with_clock(const fs::path& file, std::vector<std::string> words) {
  const auto library = shifted_clock_library();
  if (!library) return words;
  set_clock(file, {});
  // "env" becomes the program: it is that process that is paused and killed.
  words.insert(words.begin(),
               {"env", "LD_PRELOAD=" + library->string(), "HOLDFAST_CLOCK=" + file.string()});
  return words;
}

void set_clock(const fs::path& file, duration shift) {
  const runtime::descriptor opened =
      runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file.c_str());
  const std::int64_t value = shift.count();
  if (::pwrite(opened.get(), &value, sizeof value, 0) != sizeof value) {
    throw std::system_error(errno, std::system_category(), file);
  }
}

}  // namespace holdfast::torture
