#include "runtime/password_file.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>

namespace holdfast::runtime {

namespace {

constexpr std::size_t longest_password = 4096;

}  // namespace

result<std::string> read_password_file(const std::string& path) {
  errno = 0;
  std::ifstream input(path);
  std::array<char, longest_password + 2> buffer{};  // a '\r' and the end
  input.getline(buffer.data(), buffer.size());
  std::string line(buffer.data());
  const bool too_long = input.fail() && !line.empty();
  if (line.ends_with('\r')) line.pop_back();
  if (too_long || line.size() > longest_password) {
    return failure(errc::invalid, "its first line is too long");
  }
  if (errno != 0 && line.empty()) {
    return failure(errc::invalid, "it cannot be read: " + std::string(std::strerror(errno)));
  }
  if (line.empty()) return failure(errc::invalid, "its first line is empty");
  return line;
}

}  // namespace holdfast::runtime
