// Jute, the encoding of ZooKeeper's wire: big-endian numbers, strings and buffers behind their
// length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::zookeeper {

// Appends to a text. Not thread-safe.
class jute_writer {
 public:
  explicit jute_writer(std::string& into) noexcept : into_(into) {}

  jute_writer& flag(bool value);
  jute_writer& number(std::int32_t value);
  jute_writer& wide(std::int64_t value);
  jute_writer& text(std::string_view value);  // also a buffer

 private:
  std::string& into_;
};

// Reads what a server sent, which may be anything: past the end every value is zero or empty, and
// good() is false from then on. Not thread-safe.
class jute_reader {
 public:
  explicit jute_reader(std::string_view from) noexcept : from_(from) {}

  bool flag();
  std::int32_t number();
  std::int64_t wide();
  std::string_view text();  // a length of -1, which is null, reads as empty

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::string_view rest() const noexcept { return from_; }

 private:
  std::string_view take(std::size_t size);

  std::string_view from_;
  bool good_ = true;
};

}  // namespace holdfast::zookeeper
