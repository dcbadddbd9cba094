#include "cli/passed_url.hpp"

#include "cli/number_text.hpp"
#include "cli/secrets.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace holdfast::cli {

namespace {

constexpr const char* descriptor_variable = "HOLDFAST_URL_FD";
constexpr const char* memory_file_name = "holdfast-url";
constexpr off_t longest_file = 64 * 1024;

[[noreturn]] void fail_call(const char* call) {
  throw std::system_error(errno, std::system_category(), call);
}

// The number may have been given to another file since.
bool is_ours(int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  if (length <= 0) return false;
  const std::string_view found(target.data(), static_cast<std::size_t>(length));
  return found.starts_with(std::string("/memfd:") + memory_file_name);
}

std::optional<passed_url> read_passed_url(int file) {
  struct stat status {};
  if (!is_ours(file) || ::fstat(file, &status) != 0 || status.st_size > longest_file) {
    return std::nullopt;
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  // At its place, not from where the last reader stopped: all of CMD shares one position.
  if (::pread(file, text.data(), text.size(), 0) != status.st_size) return std::nullopt;
  const auto end = text.find('\0');
  if (end == std::string::npos) return std::nullopt;
  return passed_url{text.substr(0, end), text.substr(end + 1)};
}

}  // namespace

std::optional<passed_url> received_url() {
  const char* number = std::getenv(descriptor_variable);
  if (number == nullptr) return std::nullopt;
  const auto file = parse_number(number, 3, INT_MAX);
  return file ? read_passed_url(static_cast<int>(*file)) : std::nullopt;
}

url_for_child pass_url(const passed_url& what, const std::string& space) {
  url_for_child made;
  made.file = descriptor(::memfd_create(memory_file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.file) fail_call("memfd_create");
  const std::string text = what.url + '\0' + what.password;
  const ssize_t written = ::write(made.file.get(), text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) fail_call("write");
  constexpr int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(made.file.get(), F_ADD_SEALS, seals) != 0) fail_call("F_ADD_SEALS");
  made.variables = {"HOLDFAST_URL=" + public_url(what.url),
                    std::string(descriptor_variable) + "=" + std::to_string(made.file.get())};
  if (!space.empty()) made.variables.push_back("HOLDFAST_NAMESPACE=" + space);
  return made;
}

std::string remedy_inside_run() {
  if (std::getenv("HOLDFAST_CLAIM") == nullptr || received_url()) return {};
  if (std::getenv(descriptor_variable) != nullptr) {
    return "; a program in between closed the descriptor of --pass-url: use --password-file";
  }
  return "; holdfast run does not pass the password on: use --password-file here, or --pass-url "
         "there";
}

}  // namespace holdfast::cli
