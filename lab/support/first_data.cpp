#include "support/first_data.hpp"

#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

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

// Of one name: the others wait until it is made.
class turn {
 public:
  explicit turn(const fs::path& file)
      : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::system_error(errno, std::system_category(), file);
    while (::flock(file_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int problem = errno;
      ::close(file_);
      throw std::system_error(problem, std::system_category(), file);
    }
  }
  ~turn() { ::close(file_); }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

 private:
  int file_;
};

}  // namespace

void copy_first_data(std::string program, const fs::path& to,
                     const std::function<void(const fs::path& into)>& make) {
  constexpr auto all = fs::copy_options::recursive | fs::copy_options::copy_symlinks;
  std::ranges::replace(program, '/', '-');
  const fs::path known = known_folder() / program;
  fs::create_directories(known.parent_path());
  {
    const turn mine(known.string() + ".turn");
    if (!fs::exists(known)) {
      make(to);
      const fs::path half = known.string() + ".half";  // of one that was killed here, too
      fs::remove_all(half);
      fs::copy(to, half, all);
      fs::rename(half, known);
      return;
    }
  }
  fs::copy(known, to, all);
}

}  // namespace holdfast::test
