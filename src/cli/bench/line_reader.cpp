#include "cli/bench/line_reader.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace holdfast::cli {

bool line_reader::fill() {
  std::array<char, 65536> part;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  ssize_t size = 0;
  do {
    size = ::read(file_, part.data(), part.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return true;
  if (size <= 0 || text_.size() > longest) return false;
  text_.append(part.data(), static_cast<std::size_t>(size));
  return true;
}

std::optional<std::string> line_reader::next() {
  const auto end = text_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

std::optional<std::string> line_reader::wait() {
  for (;;) {
    if (auto line = next()) return line;
    if (!fill()) return std::nullopt;
  }
}

bool write_all(int file, const std::string& text) noexcept {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t size = ::send(file, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) done += static_cast<std::size_t>(size);
  }
  return true;
}

}  // namespace holdfast::cli
