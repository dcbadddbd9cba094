// Protocol buffers by hand: fields of varints and of bytes, which is all that etcd's messages are made
// of. What is read comes from outside: every length is checked against what is there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::etcd {

// Appends fields to a text. Values that are the default are left out, as protobuf does.
class proto_writer {
 public:
  explicit proto_writer(std::string& into) noexcept : into_(into) {}

  proto_writer& number(std::uint32_t field, std::uint64_t value);
  proto_writer& signed_number(std::uint32_t field, std::int64_t value) {
    return number(field, static_cast<std::uint64_t>(value));
  }
  proto_writer& flag(std::uint32_t field, bool value) { return number(field, value ? 1 : 0); }
  proto_writer& bytes(std::uint32_t field, std::string_view value);
  // Written also if it is empty: that it is there means something.
  proto_writer& message(std::uint32_t field, std::string_view value);

 private:
  void varint(std::uint64_t value);

  std::string& into_;
};

struct proto_field {
  std::uint32_t number = 0;
  bool has_bytes = false;
  std::uint64_t value = 0;  // of a varint
  std::string_view bytes;   // of bytes, texts and messages
  [[nodiscard]] std::int64_t as_signed() const noexcept { return static_cast<std::int64_t>(value); }
};

// Goes through the fields of a message. Unknown fields are the caller's to skip; groups and anything
// else that is no field make it end, not good.
class proto_reader {
 public:
  explicit proto_reader(std::string_view from) noexcept : rest_(from) {}

  // False: at the end, or malformed.
  bool next(proto_field& into);
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  bool varint(std::uint64_t& into);
  bool fail() noexcept {
    good_ = false;
    return false;
  }

  std::string_view rest_;
  bool good_ = true;
};

}  // namespace holdfast::etcd
