#include "stores/sql/common/names.hpp"

#include "core/hex.hpp"

#include <algorithm>
#include <cstdint>

namespace holdfast::sql {

std::string key_of(const spi::resource_id& resource) {
  std::string key;
  key.reserve(resource.space.size() + 1 + resource.name.size());
  key += resource.space;
  key += '/';
  key += resource.name;
  return key;
}

spi::resource_id resource_of(std::string_view key) {
  const std::size_t slash = std::min(key.find('/'), key.size());
  return {std::string(key.substr(0, slash)),
          std::string(key.substr(std::min(slash + 1, key.size())))};
}

std::string space_of(std::string_view key) {
  return std::string(key.substr(0, std::min(key.find('/') + 1, key.size())));
}

std::string fresh_process(spi::runtime& runtime) {
  return core::hex_of(runtime.random()) + core::hex_of(runtime.random());
}

std::string with_prefix(std::string_view text, std::string_view prefix) {
  std::string made;
  made.reserve(text.size() + text.size() / 8);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = text.find("@.", at);
    made += text.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    made += prefix;
    at = mark + 2;
  }
  return made;
}

std::string_view bytes_of(const spi::claim_id& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int byte = core::hex_byte(text.substr(i));
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::optional<spi::claim_id> claim_from_hex(std::string_view text) {
  const auto bytes = from_hex(text);
  spi::claim_id id;
  if (!bytes || bytes->size() != id.bytes.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), id.bytes.begin());
  return id;
}

}  // namespace holdfast::sql
