#include "stores/redis/foreign/formats.hpp"

#include "core/hex.hpp"
#include "stores/redis/layout.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace holdfast::redis {

namespace {

std::string same_name(const std::string& name) { return name; }
std::string no_channel(const std::string&) { return {}; }
std::string no_key(const std::string&, const std::string&) { return {}; }

std::string own_prefix(const spi::resource_id& resource) {
  return partition_prefix(partition_of(resource));
}

std::string fence_beside(const spi::resource_id& resource) {
  return own_prefix(resource) + "f:" + resource.name;
}

std::string hex_owner(const spi::claim& claim) { return spi::to_hex(claim.id); }

// Redisson puts braces around a name that has none, so that its other keys are in its slot.
std::string tagged(const std::string& name) {
  return name.find('{') != std::string::npos ? name : "{" + name + "}";
}

// "UUID:THREAD", which Redisson compares but never parses; no Java thread has the number 0. A claim
// is one owner and counts as one: re-entry happens on our side.
std::string redisson_owner(const spi::claim& claim) {
  std::string text = spi::to_hex(claim.id);
  for (const std::size_t at : {20U, 16U, 12U, 8U}) text.insert(at, "-");
  return text + ":0";
}

constexpr std::string_view writes = ":write";
constexpr std::string_view is_revoked = ":revoked";  // as the scripts write it

// Redisson's own: "OWNER:write" of a writer.
std::string redisson_reader_or_writer(const spi::claim& claim) {
  return redisson_owner(claim) + (claim.mode == spi::mode::shared ? "" : std::string(writes));
}

// A reader's share of the lock expires by itself, whatever the other readers do.
std::string redisson_reader_end(const std::string& name, const std::string& owner) {
  return reads(owner) ? tagged(name) + ":" + owner + ":rwlock_timeout:1" : std::string();
}

void drop(std::string_view& text, std::string_view end) {
  if (text.ends_with(end)) text.remove_suffix(end.size());
}

std::string redisson_channel(const std::string& name) {
  return "redisson_lock__channel:" + tagged(name);
}

const foreign_form redisson_fair{
    &scripts::redisson,
    redisson_owner,
    no_key,
    redisson_channel,
    true,
    "~redisson_lock_queue:* ~redisson_lock_timeout:* ~redisson_lock_token:* ~holdfast:*",
    "&redisson_lock__channel:*"};

const foreign_form redisson_read_write{
    &scripts::redisson_read_write,
    redisson_reader_or_writer,
    redisson_reader_end,
    [](const std::string& name) { return "redisson_rwlock:" + tagged(name); },
    false,
    "~{NAME}:* ~redisson_lock_token:* ~holdfast:*",
    "&redisson_rwlock:*"};

// A permit, with as many bytes as Redisson's.
std::string raw_id(const spi::claim& claim) {
  return {reinterpret_cast<const char*>(claim.id.bytes.data()), claim.id.bytes.size()};
}

const foreign_form redisson_permits{
    &scripts::redisson_permits,
    raw_id,
    no_key,
    [](const std::string& name) { return "redisson_sc:" + tagged(name); },
    false,
    "~{NAME}:timeout ~redisson_lock_token:* ~holdfast:*",
    "&redisson_sc:*"};

}  // namespace

const foreign_format simple_format{
    "simple",
    same_name,
    fence_beside,
    own_prefix,
    &scripts::simple_inspect,
    {&scripts::simple, hex_owner, no_key, no_channel, false, "~holdfast:*", ""},
    nullptr,
    nullptr,
    nullptr,
    true,
    false,
    false};

const foreign_format python_redis_lock_format{
    "python-redis-lock",
    [](const std::string& name) { return "lock:" + name; },
    fence_beside,
    own_prefix,
    &scripts::simple_inspect,
    {&scripts::simple, hex_owner,
     [](const std::string& name, const std::string&) { return "lock-signal:" + name; }, no_channel,
     false, "~lock-signal:* ~holdfast:*", ""},
    nullptr,
    nullptr,
    nullptr,
    false,
    false,
    false};

const foreign_format redisson_format{
    "redisson",
    same_name,
    [](const spi::resource_id& resource) { return "redisson_lock_token:" + tagged(resource.name); },
    [](const spi::resource_id& resource) { return "holdfast:" + tagged(resource.name) + ":"; },
    &scripts::redisson_inspect,
    {&scripts::redisson, redisson_owner, no_key, redisson_channel, false,
     "~redisson_lock_token:* ~holdfast:*", "&redisson_lock__channel:*"},
    &redisson_fair,
    &redisson_read_write,
    &redisson_permits,
    false,
    true,
    true};

const foreign_form& foreign_format::of(const spi::claim& claim) const noexcept {
  if (claim.mode == spi::mode::permit && permits != nullptr) return *permits;
  const bool both = claim.mode == spi::mode::shared || claim.role == spi::role::writer;
  if (both && read_write != nullptr) return *read_write;
  return claim.fair && fair != nullptr ? *fair : lock;
}

const foreign_format* foreign_format_of(const std::string& dialect) {
  for (const foreign_format* each : {&simple_format, &python_redis_lock_format, &redisson_format}) {
    if (dialect == each->dialect) return each;
  }
  return nullptr;
}

bool reads(std::string_view owner) noexcept { return owner.find(writes) == owner.npos; }

std::string public_owner(std::string_view owner) {
  for (const std::string_view end : {is_revoked, writes, std::string_view(":0")}) drop(owner, end);
  std::string digits(owner);
  std::erase(digits, '-');
  spi::claim_id id;
  bool ours = digits.size() == 2 * id.bytes.size();
  for (std::size_t i = 0; ours && i < id.bytes.size(); ++i) {
    const int byte = core::hex_byte(std::string_view(digits).substr(2 * i));
    ours = byte >= 0;
    id.bytes[i] = static_cast<std::uint8_t>(byte);
  }
  if (!ours && owner.size() == id.bytes.size()) {  // a permit
    std::ranges::copy(owner, id.bytes.begin());
    ours = true;
  }
  if (ours) return spi::public_id(id);
  // Another library's: two FNV-1a hashes of it, so that all our programs show the same.
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t sum = 0xcbf29ce484222325ULL + half;
    for (const char each : owner) sum = (sum ^ static_cast<unsigned char>(each)) * 0x100000001b3ULL;
    for (std::size_t i = 0; i < 8; ++i) {
      id.bytes[half * 8 + i] = static_cast<std::uint8_t>(sum >> (8 * i));
    }
  }
  return spi::public_id(id);
}

requirements needed_by(const foreign_format& format) {
  const std::string mine = partition_prefix(partition{}) + "doctor";
  requirements needed;
  const auto call = [&](std::vector<std::string> words, const char* keys = "~holdfast:*") {
    needed.calls.push_back({std::move(words), keys});
  };
  call({"SET", mine, "1", "PX", "1000"});
  for (const char* const each : {"GET", "EXISTS", "PTTL"}) call({each, mine});
  call({"PEXPIRE", mine, "1000"});
  call({"DEL", mine});
  needed.channel = format.lock.channel("holdfast-doctor");
  needed.channels = format.lock.channels;
  needed.listening = std::string("+subscribe +publish ") + format.lock.channels;
  needed.untried = "beside the names of your locks, which are not tried";
  needed.tried = std::make_shared<const script>("return 1");
  if (const std::string list = format.lock.beside("holdfast-doctor", ""); !list.empty()) {
    call({"LPUSH", list, "1"}, format.lock.keys);
    call({"PEXPIRE", list, "1000"}, format.lock.keys);
    call({"DEL", list}, format.lock.keys);
  }
  if (needed.channel.empty()) return needed;
  const std::string hash = mine + ":hash";
  call({"HSET", hash, "f", "1"});
  call({"HEXISTS", hash, "f"});
  call({"HKEYS", hash});
  call({"HDEL", hash, "f"});
  const std::string token = format.fence_key({"", "holdfast-doctor"});
  call({"SET", token, "1", "PX", "1000"}, "~redisson_lock_token:*");
  call({"GET", token}, "~redisson_lock_token:*");
  call({"DEL", token}, "~redisson_lock_token:*");
  call({"PUBLISH", needed.channel, "0"});
  return needed;
}

std::string milliseconds(duration time) {
  return std::to_string(time / std::chrono::milliseconds(1));
}

// Redisson adds braces here in any case.
std::string redisson_latch_channel(const std::string& name) {
  return "redisson_countdownlatch__channel__{" + name + "}";
}

}  // namespace holdfast::redis
