#include "support/first_data.hpp"

#include "runtime/descriptor.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace holdfast::test {

namespace {

namespace fs = std::filesystem;

fs::path known_folder() {
  if (const char* given = std::getenv("HOLDFAST_TEST_DATA"); given != nullptr) return given;
  static const temporary_folder own(place_in_memory());
  return own.path();
}

// A lock for one name, until the descriptor is closed: others wait until the data is made.
runtime::descriptor turn_of(const fs::path& file) {
  auto mine = runtime::checked(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
  while (::flock(mine.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw std::system_error(errno, std::system_category(), "flock");
  }
  return mine;
}

}  // namespace

void copy_first_data(std::string program, const fs::path& to,
                     const std::function<void(const fs::path& into)>& make) {
  constexpr auto all = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  std::ranges::replace(program, '/', '-');
  const fs::path known = known_folder() / program;
  fs::create_directories(known.parent_path());
  {
    const runtime::descriptor mine = turn_of(known.string() + ".turn");
    if (!fs::exists(known)) {
      make(to);
      const fs::path half = known.string() + ".half";  // possibly of a process that was killed here
      fs::remove_all(half);
      fs::copy(to, half, all);
      fs::rename(half, known);
      return;
    }
  }
  fs::copy(known, to, all);
}

}  // namespace holdfast::test
