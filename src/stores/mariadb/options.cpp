#include "stores/mariadb/options.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::mariadb {

namespace {

constexpr std::size_t prefix_limit = 32;
constexpr std::size_t database_limit = 64;  // of the server: characters

std::optional<tls_mode> mode_named(std::string_view name) {
  constexpr std::pair<std::string_view, tls_mode> modes[]{
      {"disabled", tls_mode::disabled},
      {"required", tls_mode::required},
      {"verify_identity", tls_mode::verified},
  };
  for (const auto& [text, mode] : modes) {
    if (text == name) return mode;
  }
  return std::nullopt;
}

result<void> check_known(const spi::url& url) {
  return spi::check_options(
      url, {"strategy", "prefix", "connections", "pooler", "socket", "defaults_file",
            "connect_timeout", "ssl_mode", "ssl_ca", "ssl_cert", "ssl_key"});
}

struct taken {
  std::optional<tls_mode> tls;
};

result<void> take_option(const std::string& key, const std::string& value, server_options& into,
                         taken& also) {
  if (key == "prefix") {
    if (!is_prefix(value)) {
      return failure(errc::invalid,
                     "URL: prefix is 1 to 32 of a-z, 0-9 and _, and begins with a letter");
    }
    into.prefix = value;
  } else if (key == "ssl_mode") {
    also.tls = mode_named(value);
    if (!also.tls) {
      return failure(errc::invalid, "URL: ssl_mode is disabled, required or verify_identity");
    }
  } else if (key == "ssl_ca") {
    into.tls_authorities = value;
  } else if (key == "ssl_cert") {
    into.tls_certificate = value;
  } else if (key == "ssl_key") {
    into.tls_key = value;
  } else if (key == "defaults_file") {
    into.defaults = value;
  } else if (key == "socket") {
    if (!value.starts_with('/')) {
      return failure(errc::invalid, "URL: socket= is the path of a unix socket");
    }
    if (!into.hosts.empty()) return failure(errc::invalid, "URL: a host and a socket");
    into.hosts.push_back({value, 0});
  }
  return {};
}

// libmariadb's own default would let any man in the middle read everything.
void secure(server_options& options, const taken& also) {
  const bool named = !options.tls_authorities.empty() || !options.tls_certificate.empty();
  options.tls = also.tls.value_or(options.leaves_machine() || named ? tls_mode::verified
                                                                    : tls_mode::disabled);
  if (options.tls == tls_mode::verified && options.tls_authorities.empty()) {
    options.tls_authorities = sql::system_authorities();
  }
}

}  // namespace

bool is_prefix(std::string_view text) noexcept {
  const auto letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto fine = [&](char c) { return letter(c) || c == '_' || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= prefix_limit && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), fine);
}

result<server_options> options_from(const spi::url& url) {
  server_options options;
  if (auto known = check_known(url); !known) return tl::unexpected(std::move(known.error()));
  if (auto fine = sql::take_common(url, options); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (options.database.empty() || options.database.size() > database_limit ||
      options.database.find_first_of(std::string_view("\0`/", 3)) != std::string::npos) {
    return failure(errc::invalid,
                   "URL: a database is missing; written " + url.scheme + "://USER@HOST/DATABASE");
  }
  taken also;
  for (const auto& [key, value] : url.options) {
    if (auto fine = take_option(key, value, options, also); !fine) {
      return tl::unexpected(std::move(fine.error()));
    }
  }
  if (options.hosts.empty()) {
    return failure(errc::invalid, "URL: a host is missing; written " + url.scheme +
                                      "://USER@HOST/DATABASE, or with ?socket=PATH");
  }
  for (spi::endpoint& each : options.hosts) {
    if (each.port == 0 && !each.host.starts_with('/')) each.port = default_port;
  }
  secure(options, also);
  return options;
}

}  // namespace holdfast::mariadb
