#include "core/lease_token.hpp"

#include "core/limits.hpp"
#include "core/names.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace holdfast::core {

namespace {

constexpr std::string_view token_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view detached_note = " (detached)";
constexpr std::size_t longest_engine = 32;
constexpr std::size_t checksum_size = 4;

std::string to_base64(std::string_view bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8U | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text += token_digits[bits >> (count - 6) & 63U];
  }
  if (count > 0) text += token_digits[bits << (6 - count) & 63U];
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = token_digits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6U | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255U);
  }
  // Each token has one text only: bits that do not fill a byte are zero, and fewer than a digit
  // has.
  if (count >= 6 || (bits & ((1U << count) - 1U)) != 0) return std::nullopt;
  return bytes;
}

std::uint32_t checksum(std::string_view bytes) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

void put_number(std::string& to, std::uint64_t value, unsigned size) {
  for (unsigned i = 0; i < size; ++i) to += static_cast<char>(value >> (8 * (size - 1 - i)) & 255U);
}

void put_text(std::string& to, std::string_view value) {
  put_number(to, value.size(), 2);
  to += value;
}

// Reading beyond the end gives zeros and empty texts, and fine() is false from then on.
class token_reader {
 public:
  explicit token_reader(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool fine() const noexcept { return fine_; }
  [[nodiscard]] bool at_end() const noexcept { return fine_ && rest_.empty(); }

  std::string_view bytes(std::size_t size) noexcept {
    if (rest_.size() < size) {
      fine_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  std::uint64_t number(std::size_t size) noexcept {
    std::uint64_t value = 0;
    for (const char c : bytes(size)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }
  std::string text() { return std::string(bytes(number(2))); }

 private:
  std::string_view rest_;
  bool fine_ = true;
};

bool within_limits(const lease_token& token, std::uint64_t mode, std::uint64_t role) {
  constexpr limits limit = default_limits;
  if (mode > static_cast<std::uint64_t>(spi::mode::permit) ||
      role > static_cast<std::uint64_t>(spi::role::leader)) {
    return false;
  }
  if (token.ttl < limit.min_ttl || token.ttl > limit.max_ttl || token.lock_delay < duration{0} ||
      token.lock_delay > limit.max_ttl) {
    return false;
  }
  return token.permits > 0 && token.permits <= token.max && !token.engine.empty() &&
         token.engine.size() <= longest_engine && check_name(token.resource.name) &&
         check_space(token.resource.space);
}

}  // namespace

std::string to_text(const lease_token& token) {
  std::string bytes;
  bytes.append(reinterpret_cast<const char*>(token.id.bytes.data()), token.id.bytes.size());
  put_number(bytes, token.fence.value(), 8);
  put_number(bytes, static_cast<std::uint64_t>(token.ttl.count()), 8);
  put_number(bytes, static_cast<std::uint64_t>(token.lock_delay.count()), 8);
  put_number(bytes, token.permits, 4);
  put_number(bytes, token.max, 4);
  put_number(bytes, static_cast<std::uint64_t>(token.mode), 1);
  put_number(bytes, static_cast<std::uint64_t>(token.role), 1);
  put_text(bytes, token.engine);
  put_text(bytes, token.resource.space);
  put_text(bytes, token.resource.name);
  put_number(bytes, checksum(bytes), checksum_size);
  return std::string(token_mark) + to_base64(bytes);
}

result<lease_token> parse_token(std::string_view text) {
  const auto refused = failure(errc::invalid, "not a lease token, or not all of one");
  if (!text.starts_with(token_mark)) return refused;
  const auto bytes = from_base64(text.substr(token_mark.size()));
  if (!bytes || bytes->size() < checksum_size) return refused;
  const std::string_view body = std::string_view(*bytes).substr(0, bytes->size() - checksum_size);
  token_reader sum(std::string_view(*bytes).substr(body.size()));
  if (sum.number(checksum_size) != checksum(body)) return refused;
  token_reader from(body);
  lease_token token;
  std::ranges::copy(from.bytes(token.id.bytes.size()), token.id.bytes.begin());
  token.fence = fence_token(from.number(8));
  token.ttl = duration(static_cast<duration::rep>(from.number(8)));
  token.lock_delay = duration(static_cast<duration::rep>(from.number(8)));
  token.permits = static_cast<std::uint32_t>(from.number(4));
  token.max = static_cast<std::uint32_t>(from.number(4));
  const std::uint64_t mode = from.number(1);
  const std::uint64_t role = from.number(1);
  token.engine = from.text();
  token.resource.space = from.text();
  token.resource.name = from.text();
  if (!from.at_end() || !within_limits(token, mode, role)) return refused;
  token.mode = static_cast<spi::mode>(mode);
  token.role = static_cast<spi::role>(role);
  return token;
}

result<void> check_detachable(const spi::caps& caps, spi::mode mode, spi::role role) {
  if (!caps.supports_detach) {
    return failure(errc::unsupported, "this engine cannot hand a lease to another process");
  }
  const bool shared = mode == spi::mode::shared || role == spi::role::writer;
  if (shared && !caps.supports_shared_detach) {
    return failure(errc::unsupported,
                   "this engine cannot hand a lease of a shared lock to another process");
  }
  return {};
}

std::shared_ptr<spi::claim> detached_claim(const lease_token& token, const std::string& payload) {
  auto claim = std::make_shared<spi::claim>();
  claim->id = token.id;
  claim->resource = token.resource;
  claim->mode = token.mode;
  claim->role = token.role;
  claim->permits = token.permits;
  claim->max = token.max;
  claim->queued = false;
  claim->renewed = false;
  claim->detached = true;
  claim->ttl = token.ttl;
  claim->lock_delay = token.lock_delay;
  claim->payload = payload;
  const bool noted = payload.ends_with(detached_note);
  if (!noted && payload.size() + detached_note.size() <= longest_payload) {
    claim->payload += detached_note;
  }
  return claim;
}

}  // namespace holdfast::core
