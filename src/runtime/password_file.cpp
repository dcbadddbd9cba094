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
  const auto taken = static_cast<std::size_t>(input.gcount());
  const bool too_long = input.fail() && taken > 0;
  std::string line(buffer.data(), input.good() ? taken - 1 : taken);  // good: with the line's end
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
