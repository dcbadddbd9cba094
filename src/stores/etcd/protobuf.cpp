#include "stores/etcd/protobuf.hpp"

namespace holdfast::etcd {

namespace {

enum wire_type : std::uint8_t {
  wire_varint = 0,
  wire_fixed64 = 1,
  wire_bytes = 2,
  wire_fixed32 = 5
};

constexpr unsigned longest_varint = 10;

}  // namespace

void proto_writer::varint(std::uint64_t value) {
  while (value >= 0x80) {
    into_ += static_cast<char>(value | 0x80U);
    value >>= 7U;
  }
  into_ += static_cast<char>(value);
}

proto_writer& proto_writer::number(std::uint32_t field, std::uint64_t value) {
  if (value == 0) return *this;
  varint(std::uint64_t{field} << 3U | wire_varint);
  varint(value);
  return *this;
}

proto_writer& proto_writer::bytes(std::uint32_t field, std::string_view value) {
  return value.empty() ? *this : message(field, value);
}

proto_writer& proto_writer::message(std::uint32_t field, std::string_view value) {
  varint(std::uint64_t{field} << 3U | wire_bytes);
  varint(value.size());
  into_ += value;
  return *this;
}

bool proto_reader::varint(std::uint64_t& into) {
  into = 0;
  for (unsigned i = 0; i < longest_varint; ++i) {
    if (rest_.empty()) return fail();
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    into |= std::uint64_t{byte & 0x7fU} << (7 * i);
    if (byte < 0x80) return true;
  }
  return fail();
}

bool proto_reader::next(proto_field& into) {
  if (rest_.empty() || !good_) return false;
  std::uint64_t tag = 0;
  if (!varint(tag)) return false;
  into = {};
  if (tag >> 3U == 0 || tag >> 3U > 0x1fffffff) return fail();
  into.number = static_cast<std::uint32_t>(tag >> 3U);
  std::uint64_t size = 0;
  switch (tag & 7U) {
    case wire_varint:
      return varint(into.value);
    case wire_fixed64:
      size = 8;
      break;
    case wire_fixed32:
      size = 4;
      break;
    case wire_bytes:
      if (!varint(size)) return false;
      into.has_bytes = true;
      break;
    default:
      return fail();
  }
  if (size > rest_.size()) return fail();
  into.bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return true;
}

}  // namespace holdfast::etcd
