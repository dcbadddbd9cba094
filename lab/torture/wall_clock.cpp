#include "torture/wall_clock.hpp"

#include "clock/client_page.hpp"
#include "runtime/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace holdfast::torture {

namespace fs = std::filesystem;

namespace {

void write_number(const fs::path& file, std::size_t at, std::int64_t value) {
  const runtime::descriptor opened =
      runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), file.c_str());
  if (::pwrite(opened.get(), &value, sizeof value, static_cast<off_t>(at)) != sizeof value) {
    throw std::system_error(errno, std::system_category(), file);
  }
}

}  // namespace

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
  return library ? with_clock_of(*library, file, std::move(words)) : words;
}

std::vector<std::string> with_clock_of(const fs::path& library, const fs::path& file,
                                       std::vector<std::string> words) {
  for (std::size_t at = 0; at < sizeof(client_page); at += sizeof(std::int64_t)) {
    write_number(file, at, 0);
  }
  // "env" becomes the program by exec: that process is the one paused and killed.
  words.insert(words.begin(),
               {"env", "LD_PRELOAD=" + library.string(), "HOLDFAST_CLOCK=" + file.string()});
  return words;
}

void set_clock(const fs::path& file, duration shift) {
  write_number(file, offsetof(client_page, shift), shift.count());
}

void strike_at_call(const fs::path& file, std::int64_t calls, int signal) {
  if (calls > 0) {
    write_number(file, offsetof(client_page, struck_at), 0);
    write_number(file, offsetof(client_page, signal), signal);
  }
  write_number(file, offsetof(client_page, countdown), calls);
}

std::optional<time_point> struck_at(const fs::path& file) {
  const runtime::descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::int64_t value = 0;
  const ssize_t got = opened.get() >= 0 ? ::pread(opened.get(), &value, sizeof value,
                                                  offsetof(client_page, struck_at))
                                        : 0;
  if (got != sizeof value || value == 0) return std::nullopt;
  return time_point(duration(value));
}

}  // namespace holdfast::torture
