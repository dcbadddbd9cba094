// The URL that names an engine: scheme, credentials, hosts, path, options. Parsing is strict and
// its errors never repeat the text, which may hold a password.
#pragma once

#include <holdfast/result.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::spi {

// A password or key: no stream operator, no comparison, wiped when it ends.
class secret {
 public:
  secret() = default;
  explicit secret(std::string text) : text_(std::move(text)) {}
  secret(const secret&) = default;
  secret(secret&&) noexcept = default;
  secret& operator=(const secret&) = default;
  secret& operator=(secret&&) noexcept = default;
  ~secret();

  [[nodiscard]] const std::string& reveal() const noexcept { return text_; }
  [[nodiscard]] bool empty() const noexcept { return text_.empty(); }

 private:
  std::string text_;
};

struct endpoint {
  std::string host;
  std::uint16_t port = 0;  // 0: the engine's default

  friend auto operator<=>(const endpoint&, const endpoint&) = default;
};

struct url {
  std::string scheme;
  std::string user;
  secret password;
  std::vector<endpoint> hosts;
  std::string path;  // decoded; for sqlite: the file's
  std::map<std::string, std::string> options;

  // Without password, for people.
  [[nodiscard]] std::string redacted() const;
};

// errc::invalid with what is wrong and where, never the text itself.
result<url> parse_url(std::string_view text);

// The text with its password replaced by nothing, for a child's environment and for logs.
std::string without_password(std::string_view text);

// invalid, listing the known options, if the URL has any other.
result<void> check_options(const url& url, std::initializer_list<std::string_view> known);

}  // namespace holdfast::spi
