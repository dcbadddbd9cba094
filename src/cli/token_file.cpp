#include "cli/token_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace holdfast::cli {

outcome<new_token_file> new_token_file::make(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return usage("--token-file: it is not a file", "acquire");
  }
  std::string draft = path + ".XXXXXX";
  const int file = ::mkostemp(draft.data(), O_CLOEXEC);  // 0600
  if (file < 0) {
    return usage("--token-file: it cannot be written: " + std::string(std::strerror(errno)),
                 "acquire");
  }
  return new_token_file(path, std::move(draft), file);
}

new_token_file::new_token_file(new_token_file&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::exchange(other.draft_, {})),
      file_(std::exchange(other.file_, -1)) {}

new_token_file::~new_token_file() {
  if (file_ >= 0) ::close(file_);
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

int new_token_file::fill(const std::string& token) noexcept {
  std::string_view rest = token;
  bool ended = false;
  while (!rest.empty() || !ended) {
    if (rest.empty()) {
      rest = "\n";
      ended = true;
    }
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written == 0 ? EIO : errno;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::close(std::exchange(file_, -1)) != 0) return errno;
  if (::rename(draft_.c_str(), path_.c_str()) != 0) return errno;
  draft_.clear();
  return 0;
}

}  // namespace holdfast::cli
