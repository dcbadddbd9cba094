// The messages of etcd's API (version 3) that are needed, to and from bytes.
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::etcd {

// Protocol buffers by hand: fields of varints and of bytes, which is all that etcd's messages are
// made of. What is read is untrusted input: every length is checked against what is there.
//
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
  // Written even if it is empty: its presence has a meaning.
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

// Goes through the fields of a message. The caller skips unknown fields; groups and anything else
// that is not a field end it with `good` false.
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

enum class method : std::uint8_t {
  range,
  delete_range,
  txn,
  lease_grant,
  lease_keep_alive,
  lease_revoke,
  lease_time_to_live,
  watch,
  authenticate,
  member_list,
  status,
};

// "/etcdserverpb.KV/Range"
std::string_view path_of(method what) noexcept;

struct call {
  method what{};
  std::string body;
};

// --- requests ------------------------------------------------------------------------------------

struct key_range {
  std::string key;
  std::string end{};  // the first key behind it; empty: this one key
};
// All keys with this prefix; an empty prefix: all keys.
key_range keys_with(std::string prefix);

struct range_options {
  std::int64_t limit = 0;     // 0: all
  bool newest_first = false;  // by creation; else in the order of the keys
  bool keys_only = false;
  std::int64_t revision = 0;       // 0: the current one
  std::int64_t created_until = 0;  // leaves out keys that were created later; 0: none
};

// Bodies: of a call, or of an operation within a transaction. A range is linearizable.
std::string range_body(const key_range& of, const range_options& how = {});
std::string put_body(std::string_view key, std::string_view value, std::int64_t lease);
std::string delete_body(const key_range& of);

inline call range_call(const key_range& of, const range_options& how = {}) {
  return {method::range, range_body(of, how)};
}

// One transaction: conditions, what is done if all of them hold, what is done if not.
class txn_writer {
 public:
  enum class relation : std::uint8_t { equal = 0, less = 2 };

  // 0 is created(): the key is not there.
  txn_writer& created(const key_range& of, relation how, std::int64_t revision);
  txn_writer& modified(const key_range& of, relation how, std::int64_t revision);
  txn_writer& value(std::string_view key, std::string_view equal);  // not empty

  txn_writer& then_range(const std::string& body) { return add(2, 1, body); }
  txn_writer& then_put(const std::string& body) { return add(2, 2, body); }
  txn_writer& then_delete(const std::string& body) { return add(2, 3, body); }
  txn_writer& else_range(const std::string& body) { return add(3, 1, body); }
  txn_writer& else_put(const std::string& body) { return add(3, 2, body); }

  [[nodiscard]] call made() && { return {method::txn, std::move(body_)}; }

 private:
  txn_writer& add(std::uint32_t branch, std::uint32_t kind, const std::string& body);

  std::string body_;
};

// All of these at one revision; like a range, the current one.
call read_call(const std::vector<key_range>& of, const range_options& how = {});

call lease_grant_call(std::int64_t seconds);
call lease_call(method what, std::int64_t lease);
call authenticate_call(std::string_view user, std::string_view password);

enum class watch_filter : std::uint8_t { none, no_put, no_delete };

std::string watch_create(const key_range& of, std::int64_t id, watch_filter without);
std::string watch_cancel(std::int64_t id);

// --- answers -------------------------------------------------------------------------------------

struct answer_header {
  std::int64_t revision = 0;
  std::uint64_t term = 0;

  // Every valid answer of a server has these.
  [[nodiscard]] bool complete() const noexcept { return revision > 0 && term > 0; }
};
// Of any answer; nothing if there is none.
std::optional<answer_header> read_header(std::string_view body);

struct key_value {
  std::string key;
  std::string value;
  std::int64_t created = 0;
  std::int64_t modified = 0;
  std::int64_t lease = 0;
};

struct range_answer {
  answer_header header;
  std::vector<key_value> kvs;
  std::int64_t count = 0;  // of all keys in the range, also of those beyond the limit
  bool more = false;
};

struct deletion_answer {
  answer_header header;
  std::int64_t deleted = 0;  // how many keys
};

struct txn_answer {
  struct part {
    range_answer range;        // of a range
    std::int64_t deleted = 0;  // of a deletion
  };
  answer_header header;
  bool succeeded = false;
  std::vector<part> parts;
};

struct lease_answer {
  std::int64_t id = 0;
  std::int64_t seconds = 0;  // 0 or less: there is no such lease
  std::string error;
};

struct watch_answer {
  struct event {
    bool deleted = false;
    key_value kv;
  };
  answer_header header;
  std::int64_t id = 0;
  bool created = false;
  bool cancelled = false;
  std::int64_t compacted = 0;
  std::string reason;
  std::vector<event> events;
};

struct status_answer {
  answer_header header;
  std::string version;
  std::uint64_t leader = 0;
  std::vector<std::string> errors;
};

// unavailable: no such message.
result<range_answer> read_range(std::string_view body);
result<txn_answer> read_txn(std::string_view body);
result<deletion_answer> read_deletion(std::string_view body);
result<lease_answer> read_lease(std::string_view body);
result<std::string> read_token(std::string_view body);
result<watch_answer> read_watch(std::string_view body);
result<status_answer> read_status(std::string_view body);
result<std::size_t> read_member_count(std::string_view body);

}  // namespace holdfast::etcd
