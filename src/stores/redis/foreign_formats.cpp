#include "stores/redis/foreign_formats.hpp"

#include "stores/redis/layout.hpp"

namespace holdfast::redis {

namespace {

std::string same_name(const std::string& name) { return name; }
std::string no_channel(const std::string&) { return {}; }
std::string no_key(const spi::claim&) { return {}; }

std::string fence_beside(const spi::resource_id& resource) {
  return partition_prefix(partition_of(resource)) + "f:" + resource.name;
}

std::string hex_owner(const spi::claim& claim) { return spi::to_hex(claim.id); }

// Redisson puts braces around a name that has none, so that what belongs to it is in its slot.
std::string tagged(const std::string& name) {
  return name.find('{') != std::string::npos ? name : "{" + name + "}";
}

// "UUID:THREAD", which Redisson compares and never reads. A claim is one owner and counts one: who
// enters again does so on this side.
std::string redisson_owner(const spi::claim& claim) {
  std::string text = spi::to_hex(claim.id);
  for (const std::size_t at : {20U, 16U, 12U, 8U}) text.insert(at, "-");
  return text + ":1";
}

bool reads(const spi::claim& claim) { return claim.mode == spi::mode::shared; }

// Redisson's own: "OWNER:write" of a writer.
std::string redisson_reader_or_writer(const spi::claim& claim) {
  return redisson_owner(claim) + (reads(claim) ? "" : ":write");
}

// A reader's share of the lock ends by itself, whatever the others do.
std::string redisson_reader_end(const spi::claim& claim) {
  if (!reads(claim)) return {};
  return tagged(claim.resource.name) + ":" + redisson_owner(claim) + ":rwlock_timeout:1";
}

const foreign_form redisson_read_write{
    &scripts::redisson_rw_attempt,
    &scripts::redisson_rw_leave,
    &scripts::redisson_rw_renew,
    redisson_reader_or_writer,
    redisson_reader_end,
    [](const std::string& name) { return "redisson_rwlock:" + tagged(name); },
    "~{NAME}:* ~redisson_lock_token:* ~holdfast:*",
    "&redisson_rwlock:*"};

}  // namespace

const foreign_format simple_format{
    "simple",
    same_name,
    fence_beside,
    &scripts::simple_inspect,
    {&scripts::simple_attempt, &scripts::simple_leave, &scripts::simple_renew, hex_owner, no_key,
     no_channel, "~holdfast:*", ""},
    nullptr,
    true,
    false,
    ""};

const foreign_format python_redis_lock_format{
    "python-redis-lock",
    [](const std::string& name) { return "lock:" + name; },
    fence_beside,
    &scripts::simple_inspect,
    {&scripts::simple_attempt, &scripts::simple_leave, &scripts::simple_renew, hex_owner,
     [](const spi::claim& claim) { return "lock-signal:" + claim.resource.name; }, no_channel,
     "~lock-signal:* ~holdfast:*", ""},
    nullptr,
    false,
    false,
    ""};

const foreign_format redisson_format{
    "redisson",
    same_name,
    [](const spi::resource_id& resource) { return "redisson_lock_token:" + tagged(resource.name); },
    &scripts::redisson_inspect,
    {&scripts::redisson_attempt, &scripts::redisson_leave, &scripts::redisson_renew, redisson_owner,
     no_key, [](const std::string& name) { return "redisson_lock__channel:" + tagged(name); },
     "~redisson_lock_token:* ~holdfast:*", "&redisson_lock__channel:*"},
    &redisson_read_write,
    false,
    true,
    "Redisson's do not keep who holds a permit, so those of a process that dies would be lost"};

const foreign_form& foreign_format::of(const spi::claim& claim) const noexcept {
  const bool both = claim.mode == spi::mode::shared || claim.role == spi::role::writer;
  return both && read_write != nullptr ? *read_write : lock;
}

const foreign_format* foreign_format_of(const std::string& dialect) {
  for (const foreign_format* each : {&simple_format, &python_redis_lock_format, &redisson_format}) {
    if (dialect == each->dialect) return each;
  }
  return nullptr;
}

// Redisson adds braces here in any case.
std::string redisson_latch_channel(const std::string& name) {
  return "redisson_countdownlatch__channel__{" + name + "}";
}

}  // namespace holdfast::redis
