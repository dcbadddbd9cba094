// Big-endian fields, as Lua's struct.pack and struct.unpack write and read them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::redis {

// Every request is written by one: fields go to their places, without a growing string's checks for
// each byte.
class byte_writer {
 public:
  explicit byte_writer(std::size_t expected) : bytes_(expected, '\0') {}

  byte_writer& text(std::string_view value) {
    std::ranges::copy(value, room(value.size()));
    return *this;
  }
  byte_writer& small(std::uint8_t value) { return whole<1>(value); }
  byte_writer& medium(std::uint16_t value) { return whole<2>(value); }
  byte_writer& number(std::uint32_t value) { return whole<4>(value); }
  // Microseconds and fences: whole numbers below 2^53, exact in Lua's doubles.
  byte_writer& real(double value) { return whole<8>(std::bit_cast<std::uint64_t>(value)); }
  // With its length before it.
  byte_writer& counted(std::string_view value) {
    medium(static_cast<std::uint16_t>(value.size()));
    return text(value);
  }

  [[nodiscard]] std::string take() {
    bytes_.resize(written_);
    return std::move(bytes_);
  }

 private:
  // Where the next bytes go.
  char* room(std::size_t size) {
    if (bytes_.size() - written_ < size) bytes_.resize(2 * bytes_.size() + size);
    char* const here = bytes_.data() + written_;
    written_ += size;
    return here;
  }
  template <unsigned Size>
  byte_writer& whole(std::uint64_t value) {
    char* const to = room(Size);
    for (unsigned i = 0; i < Size; ++i) to[i] = static_cast<char>(value >> (8 * (Size - 1 - i)));
    return *this;
  }

  std::string bytes_;
  std::size_t written_ = 0;
};

// Reading beyond the end gives zeros and empty texts, and ok() is false from then on.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool more() const noexcept { return ok_ && !rest_.empty(); }

  std::string_view text(std::size_t size) noexcept {
    if (rest_.size() < size) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  std::uint8_t small() noexcept { return static_cast<std::uint8_t>(whole(1)); }
  std::uint16_t medium() noexcept { return static_cast<std::uint16_t>(whole(2)); }
  std::uint32_t number() noexcept { return static_cast<std::uint32_t>(whole(4)); }
  double real() noexcept { return std::bit_cast<double>(whole(8)); }
  std::string_view counted() noexcept { return text(medium()); }

 private:
  std::uint64_t whole(std::size_t size) noexcept {
    std::uint64_t value = 0;
    for (const char c : text(size)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace holdfast::redis
