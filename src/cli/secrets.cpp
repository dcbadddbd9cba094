#include "cli/secrets.hpp"

#include "cli/passed_url.hpp"
#include "core/lease_token.hpp"
#include "runtime/password_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::string_view url_variable = "HOLDFAST_URL=";
constexpr std::string_view password_variable = "HOLDFAST_PASSWORD=";
constexpr std::array<std::string_view, 3> secret_options{
    "password=", "sslpassword=", "sentinel_password="};

struct range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// From the ':' of "user:password@" to the last '@' there is: rather too much than too little.
std::optional<range> widest_credentials(std::string_view text) {
  const auto slashes = text.find("://");
  const auto at = text.rfind('@');
  if (slashes == std::string_view::npos || at == std::string_view::npos) return std::nullopt;
  const auto colon = text.find(':', slashes + 3);
  if (colon == std::string_view::npos || colon > at) return std::nullopt;
  return range{colon, at};
}

// The value of a secret option behind '?' or '&'.
std::optional<range> secret_option(std::string_view text, std::size_t from) {
  for (const std::string_view key : secret_options) {
    for (auto at = text.find(key, from); at != std::string_view::npos;
         at = text.find(key, at + 1)) {
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
  while (const auto gap = secret_option(text, 0)) cut(text, *gap);
}

}  // namespace

void scrub_arguments(int count, char** arguments) noexcept {
  for (int i = 1; i < count && std::strcmp(arguments[i], "--") != 0; ++i) scrub(arguments[i]);
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
  while (const auto gap = secret_option(clean, 0)) clean.erase(gap->begin, gap->end - gap->begin);
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
    if (entry.starts_with(password_variable) || entry.starts_with(url_descriptor_variable) ||
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

outcome<std::string> read_password(const std::string& file) {
  auto read = runtime::read_password_file(file);
  if (!read) return usage("--password-file: " + read.error().detail);
  return *std::move(read);
}

}  // namespace holdfast::cli
