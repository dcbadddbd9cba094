#include "stores/etcd/messages.hpp"

#include <utility>

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

namespace {

enum compare_target : std::uint8_t { target_create = 1, target_mod = 2, target_value = 3 };
constexpr std::uint32_t range_end_of_compare = 64;

tl::unexpected<error> malformed(const char* what) {
  return failure(errc::unavailable, std::string("etcd: a malformed answer (") + what + ")");
}

// Sets `good` to false if it is not a valid message; it is never set to true again.
template <class Take>
void for_each_field(std::string_view from, bool& good, Take take) {
  proto_reader reader(from);
  for (proto_field each; reader.next(each);) take(each);
  good = good && reader.good();
}

answer_header header_in(std::string_view from, bool& good) {
  answer_header header;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 3) header.revision = each.as_signed();
    if (each.number == 4) header.term = each.value;
  });
  return header;
}

key_value key_value_in(std::string_view from, bool& good) {
  key_value kv;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 1) kv.key = each.bytes;
    if (each.number == 2) kv.created = each.as_signed();
    if (each.number == 3) kv.modified = each.as_signed();
    if (each.number == 5) kv.value = each.bytes;
    if (each.number == 6) kv.lease = each.as_signed();
  });
  return kv;
}

range_answer range_in(std::string_view from, bool& good) {
  range_answer answer;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 1) answer.header = header_in(each.bytes, good);
    if (each.number == 2) answer.kvs.push_back(key_value_in(each.bytes, good));
    if (each.number == 3) answer.more = each.value != 0;
    if (each.number == 4) answer.count = each.as_signed();
  });
  return answer;
}

deletion_answer deletion_in(std::string_view from, bool& good) {
  deletion_answer answer;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 1) answer.header = header_in(each.bytes, good);
    if (each.number == 2) answer.deleted = each.as_signed();
  });
  return answer;
}

txn_answer::part part_in(std::string_view from, bool& good) {
  txn_answer::part part;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 1) part.range = range_in(each.bytes, good);
    if (each.number == 3) part.deleted = deletion_in(each.bytes, good).deleted;
  });
  return part;
}

watch_answer::event event_in(std::string_view from, bool& good) {
  watch_answer::event event;
  for_each_field(from, good, [&](const proto_field& each) {
    if (each.number == 1) event.deleted = each.value == 1;
    if (each.number == 2) event.kv = key_value_in(each.bytes, good);
  });
  return event;
}

std::string compare_body(const key_range& of, txn_writer::relation how, compare_target target,
                         std::int64_t revision) {
  std::string body;
  proto_writer out(body);
  out.number(1, static_cast<std::uint64_t>(how)).number(2, target).bytes(3, of.key);
  // A member of a oneof: written even if it is zero.
  const std::uint32_t field = target == target_create ? 5 : 6;
  if (revision != 0) {
    out.signed_number(field, revision);
  } else {
    body += static_cast<char>(field << 3U);
    body += '\0';
  }
  out.bytes(range_end_of_compare, of.end);
  return body;
}

}  // namespace

std::string_view path_of(method what) noexcept {
  switch (what) {
    case method::range:
      return "/etcdserverpb.KV/Range";
    case method::delete_range:
      return "/etcdserverpb.KV/DeleteRange";
    case method::txn:
      return "/etcdserverpb.KV/Txn";
    case method::lease_grant:
      return "/etcdserverpb.Lease/LeaseGrant";
    case method::lease_keep_alive:
      return "/etcdserverpb.Lease/LeaseKeepAlive";
    case method::lease_revoke:
      return "/etcdserverpb.Lease/LeaseRevoke";
    case method::lease_time_to_live:
      return "/etcdserverpb.Lease/LeaseTimeToLive";
    case method::watch:
      return "/etcdserverpb.Watch/Watch";
    case method::authenticate:
      return "/etcdserverpb.Auth/Authenticate";
    case method::member_list:
      return "/etcdserverpb.Cluster/MemberList";
    case method::status:
      return "/etcdserverpb.Maintenance/Status";
  }
  return {};
}

key_range keys_with(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && static_cast<std::uint8_t>(end.back()) == 0xff) end.pop_back();
  if (end.empty()) return {prefix.empty() ? std::string(1, '\0') : prefix, std::string(1, '\0')};
  end.back() = static_cast<char>(static_cast<std::uint8_t>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

std::string range_body(const key_range& of, const range_options& how) {
  constexpr std::uint64_t descending = 2;
  constexpr std::uint64_t by_creation = 2;
  std::string body;
  proto_writer out(body);
  out.bytes(1, of.key).bytes(2, of.end).signed_number(3, how.limit).signed_number(4, how.revision);
  if (how.newest_first) out.number(5, descending).number(6, by_creation);
  out.flag(8, how.keys_only).signed_number(13, how.created_until);
  return body;
}

std::string put_body(std::string_view key, std::string_view value, std::int64_t lease) {
  std::string body;
  proto_writer(body).bytes(1, key).bytes(2, value).signed_number(3, lease);
  return body;
}

std::string delete_body(const key_range& of) {
  std::string body;
  proto_writer(body).bytes(1, of.key).bytes(2, of.end);
  return body;
}

txn_writer& txn_writer::created(const key_range& of, relation how, std::int64_t revision) {
  proto_writer(body_).message(1, compare_body(of, how, target_create, revision));
  return *this;
}

txn_writer& txn_writer::modified(const key_range& of, relation how, std::int64_t revision) {
  proto_writer(body_).message(1, compare_body(of, how, target_mod, revision));
  return *this;
}

txn_writer& txn_writer::value(std::string_view key, std::string_view equal) {
  std::string body;
  proto_writer(body).number(2, target_value).bytes(3, key).bytes(7, equal);
  proto_writer(body_).message(1, body);
  return *this;
}

txn_writer& txn_writer::add(std::uint32_t branch, std::uint32_t kind, const std::string& body) {
  std::string operation;
  proto_writer(operation).message(kind, body);
  proto_writer(body_).message(branch, operation);
  return *this;
}

call read_call(const std::vector<key_range>& of, const range_options& how) {
  txn_writer reads;
  for (const key_range& each : of) reads.then_range(range_body(each, how));
  return std::move(reads).made();
}

call lease_grant_call(std::int64_t seconds) {
  call made{method::lease_grant, {}};
  proto_writer(made.body).signed_number(1, seconds);
  return made;
}

call lease_call(method what, std::int64_t lease) {
  call made{what, {}};
  proto_writer(made.body).signed_number(1, lease);
  return made;
}

call authenticate_call(std::string_view user, std::string_view password) {
  call made{method::authenticate, {}};
  proto_writer(made.body).bytes(1, user).bytes(2, password);
  return made;
}

std::string watch_create(const key_range& of, std::int64_t id, watch_filter without) {
  std::string create;
  proto_writer out(create);
  out.bytes(1, of.key).bytes(2, of.end);
  if (without == watch_filter::no_put) out.message(5, std::string_view("\0", 1));
  if (without == watch_filter::no_delete) out.message(5, std::string_view("\1", 1));
  out.signed_number(7, id);
  std::string body;
  proto_writer(body).message(1, create);
  return body;
}

std::string watch_cancel(std::int64_t id) {
  std::string cancel;
  proto_writer(cancel).signed_number(1, id);
  std::string body;
  proto_writer(body).message(2, cancel);
  return body;
}

std::optional<answer_header> read_header(std::string_view body) {
  proto_reader reader(body);
  proto_field first;
  if (!reader.next(first) || first.number != 1 || !first.has_bytes) return std::nullopt;
  bool good = true;
  const answer_header header = header_in(first.bytes, good);
  if (!good) return std::nullopt;
  return header;
}

result<range_answer> read_range(std::string_view body) {
  bool good = true;
  range_answer answer = range_in(body, good);
  if (!good || !answer.header.complete()) return malformed("range");
  return answer;
}

result<txn_answer> read_txn(std::string_view body) {
  bool good = true;
  txn_answer answer;
  for_each_field(body, good, [&](const proto_field& each) {
    if (each.number == 1) answer.header = header_in(each.bytes, good);
    if (each.number == 2) answer.succeeded = each.value != 0;
    if (each.number == 3) answer.parts.push_back(part_in(each.bytes, good));
  });
  if (!good || !answer.header.complete()) return malformed("transaction");
  return answer;
}

result<deletion_answer> read_deletion(std::string_view body) {
  bool good = true;
  const deletion_answer answer = deletion_in(body, good);
  if (!good || !answer.header.complete()) return malformed("deletion");
  return answer;
}

result<lease_answer> read_lease(std::string_view body) {
  bool good = true;
  lease_answer answer;
  for_each_field(body, good, [&](const proto_field& each) {
    if (each.number == 2) answer.id = each.as_signed();
    if (each.number == 3) answer.seconds = each.as_signed();
    if (each.number == 4 && each.has_bytes) answer.error = each.bytes;
  });
  if (!good) return malformed("lease");
  return answer;
}

result<std::string> read_token(std::string_view body) {
  bool good = true;
  std::string token;
  for_each_field(body, good, [&](const proto_field& each) {
    if (each.number == 2) token = each.bytes;
  });
  if (!good) return malformed("token");
  return token;
}

result<watch_answer> read_watch(std::string_view body) {
  bool good = true;
  watch_answer answer;
  for_each_field(body, good, [&](const proto_field& each) {
    if (each.number == 1) answer.header = header_in(each.bytes, good);
    if (each.number == 2) answer.id = each.as_signed();
    if (each.number == 3) answer.created = each.value != 0;
    if (each.number == 4) answer.cancelled = each.value != 0;
    if (each.number == 5) answer.compacted = each.as_signed();
    if (each.number == 6) answer.reason = each.bytes;
    if (each.number == 11) answer.events.push_back(event_in(each.bytes, good));
  });
  if (!good) return malformed("watch");
  return answer;
}

result<status_answer> read_status(std::string_view body) {
  bool good = true;
  status_answer answer;
  for_each_field(body, good, [&](const proto_field& each) {
    if (each.number == 1) answer.header = header_in(each.bytes, good);
    if (each.number == 2) answer.version = each.bytes;
    if (each.number == 4) answer.leader = each.value;
    if (each.number == 8) answer.errors.emplace_back(each.bytes);
  });
  if (!good) return malformed("status");
  return answer;
}

result<std::size_t> read_member_count(std::string_view body) {
  bool good = true;
  std::size_t count = 0;
  for_each_field(body, good, [&](const proto_field& each) { count += each.number == 2 ? 1 : 0; });
  if (!good) return malformed("members");
  return count;
}

}  // namespace holdfast::etcd
