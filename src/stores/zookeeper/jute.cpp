#include "stores/zookeeper/jute.hpp"

namespace holdfast::zookeeper {

namespace {

template <class Number>
void append(std::string& into, Number value) {
  for (int shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8) {
    into += static_cast<char>(value >> shift & 0xff);
  }
}

std::uint64_t unsigned_from(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char each : bytes) value = value << 8U | static_cast<std::uint8_t>(each);
  return value;
}

}  // namespace

jute_writer& jute_writer::flag(bool value) {
  into_ += value ? '\1' : '\0';
  return *this;
}

jute_writer& jute_writer::number(std::int32_t value) {
  append(into_, static_cast<std::uint32_t>(value));
  return *this;
}

jute_writer& jute_writer::wide(std::int64_t value) {
  append(into_, static_cast<std::uint64_t>(value));
  return *this;
}

jute_writer& jute_writer::text(std::string_view value) {
  number(static_cast<std::int32_t>(value.size()));
  into_ += value;
  return *this;
}

std::string_view jute_reader::take(std::size_t size) {
  if (size > from_.size()) {
    good_ = false;
    from_ = {};
    return {};
  }
  const std::string_view taken = from_.substr(0, size);
  from_.remove_prefix(size);
  return taken;
}

bool jute_reader::flag() { return unsigned_from(take(1)) != 0; }

std::int32_t jute_reader::number() { return static_cast<std::int32_t>(unsigned_from(take(4))); }

std::int64_t jute_reader::wide() { return static_cast<std::int64_t>(unsigned_from(take(8))); }

std::string_view jute_reader::text() {
  const std::int32_t size = number();
  return size <= 0 ? std::string_view{} : take(static_cast<std::size_t>(size));
}

}  // namespace holdfast::zookeeper
