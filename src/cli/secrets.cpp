#include "cli/secrets.hpp"

#include "cli/text.hpp"
#include "core/lease_token.hpp"
#include "runtime/password_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::string_view url_variable = "HOLDFAST_URL=";
constexpr std::string_view password_variable = "HOLDFAST_PASSWORD=";
constexpr const char* descriptor_variable = "HOLDFAST_URL_FD";  // only a holdfast may pass it on
constexpr std::array<std::string_view, 3> secret_options{
    "password=", "sslpassword=", "sentinel_password="};

struct range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// From the ':' of "user:password@" to the very last '@': rather too much than too little.
std::optional<range> widest_credentials(std::string_view text) {
  const auto slashes = text.find("://");
  const auto at = text.rfind('@');
  if (slashes == std::string_view::npos || at == std::string_view::npos) return std::nullopt;
  const auto colon = text.find(':', slashes + 3);
  if (colon == std::string_view::npos || colon > at) return std::nullopt;
  return range{colon, at};
}

// The value of a secret option behind '?' or '&'.
std::optional<range> secret_option(std::string_view text) {
  for (const std::string_view key : secret_options) {
    for (auto at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      if (at == 0 || (text[at - 1] != '?' && text[at - 1] != '&')) continue;
      const std::size_t begin = at + key.size();
      const std::size_t end = std::min(text.find('&', begin), text.size());
      if (begin != end) return range{begin, end};
    }
  }
  return std::nullopt;
}

// Closes the gap and zeroes what that leaves at the end: no trace, not even of the length.
void cut(char* text, const range& gap) noexcept {
  const std::size_t length = std::strlen(text);
  const std::size_t width = gap.end - gap.begin;
  std::memmove(text + gap.begin, text + gap.end, length - gap.end);
  std::memset(text + length - width, 0, width);
}

void scrub(char* text) noexcept {
  const std::size_t token = std::string_view(text).find(core::token_mark);
  if (token != std::string_view::npos) {
    cut(text, {token + core::token_mark.size(), std::strlen(text)});
  }
  if (const auto gap = widest_credentials(text)) cut(text, *gap);
  while (const auto gap = secret_option(text)) cut(text, *gap);
}

}  // namespace

void scrub_arguments(int count, char** arguments) noexcept {
  for (int i = 1; i < count; ++i) scrub(arguments[i]);
}

secrets take_secrets(char** environment) {
  secrets taken;
  for (char** at = environment; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    if (entry.starts_with(url_variable)) {
      taken.url = entry.substr(url_variable.size());
      scrub(*at);
    } else if (entry.starts_with(password_variable)) {
      taken.password = entry.substr(password_variable.size());
      std::memset(*at + password_variable.size(), 0, entry.size() - password_variable.size());
    }
  }
  ::unsetenv("HOLDFAST_PASSWORD");
  return taken;
}

std::string public_url(std::string_view text) {
  std::string clean = spi::without_password(text);
  if (!spi::parse_url(clean)) {
    if (const auto gap = widest_credentials(clean)) clean.erase(gap->begin, gap->end - gap->begin);
  }
  while (const auto gap = secret_option(clean)) clean.erase(gap->begin, gap->end - gap->begin);
  return clean;
}

std::vector<std::string> child_environment(char** ours, const secrets& taken,
                                           const std::vector<std::string>& additions,
                                           const std::vector<std::string_view>& withheld) {
  const auto kept_back = [&](std::string_view entry) {
    return std::any_of(withheld.begin(), withheld.end(),
                       [&](std::string_view one) { return entry.starts_with(one); });
  };
  const auto overridden = [&](std::string_view entry) {
    const std::string_view name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(additions.begin(), additions.end(),
                       [&](const std::string& one) { return one.starts_with(name); });
  };
  std::vector<std::string> made;
  for (char** at = ours; *at != nullptr; ++at) {
    const std::string_view entry(*at);
    if (entry.starts_with(password_variable) || entry.starts_with(descriptor_variable) ||
        overridden(entry) || kept_back(entry)) {
      continue;
    }
    if (entry.starts_with(url_variable) && taken.url) {
      made.push_back(std::string(url_variable) + public_url(*taken.url));
    } else {
      made.emplace_back(entry);
    }
  }
  made.insert(made.end(), additions.begin(), additions.end());
  return made;
}

outcome<std::string> read_secret(std::string_view option, const std::string& file,
                                 std::string_view topic) {
  auto read = runtime::read_password_file(file);
  if (!read) return usage(std::string(option) + ": " + read.error().detail, topic);
  return *std::move(read);
}

namespace {

constexpr const char* memory_file_name = "holdfast-url";
constexpr off_t longest_file = 64 * 1024;

void demand(bool fine, const char* call) {
  if (!fine) throw std::system_error(errno, std::system_category(), call);
}

// The number may have been reused for another file since.
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
  // From the start, not from where the last reader stopped: all of CMD's processes share one
  // position.
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

url_for_child prepare_url() {
  return {.file = runtime::checked(
              ::memfd_create(memory_file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create"),
          .variables = {}};
}

void pass_url(const passed_url& what, const std::string& space, url_for_child& into) {
  const int file = into.file.get();
  demand(write_all(file, what.url + '\0' + what.password), "write");
  constexpr int seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  demand(::fcntl(file, F_ADD_SEALS, seals) == 0, "F_ADD_SEALS");
  into.variables = {"HOLDFAST_URL=" + public_url(what.url),
                    std::string(descriptor_variable) + "=" + std::to_string(file)};
  if (!space.empty()) into.variables.push_back("HOLDFAST_NAMESPACE=" + space);
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
