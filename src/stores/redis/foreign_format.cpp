// See the header.
#include "stores/redis/foreign_format.hpp"

#include "stores/redis/layout.hpp"

namespace holdfast::redis {

namespace {

std::string nowhere(const std::string&) { return {}; }

std::string simple_fence(const spi::resource_id& resource) {
  return lane_prefix(lane_of(resource)) + "f:" + resource.name;
}

// Redisson puts braces around a name that has none, so that what belongs to it is in its slot.
std::string derived(const char* prefix, const std::string& name) {
  const bool tagged = name.find('{') != std::string::npos;
  return std::string(prefix) + (tagged ? ":" + name : ":{" + name + "}");
}

// "UUID:THREAD", which Redisson compares and never reads. A claim is one owner and counts one: who
// enters again does so on this side.
std::string redisson_owner(const spi::claim_id& id) {
  std::string text = spi::to_hex(id);
  for (const std::size_t at : {20U, 16U, 12U, 8U}) text.insert(at, "-");
  return text + ":1";
}

std::string redisson_token(const spi::resource_id& resource) {
  return derived("redisson_lock_token", resource.name);
}

std::string redisson_channel(const std::string& name) {
  return derived("redisson_lock__channel", name);
}

}  // namespace

const foreign_format simple_format{"simple",
                                   &scripts::simple_attempt,
                                   &scripts::simple_leave,
                                   &scripts::simple_renew,
                                   &scripts::simple_inspect,
                                   [](const spi::claim_id& id) { return spi::to_hex(id); },
                                   simple_fence,
                                   nowhere,
                                   "~holdfast:*",
                                   ""};

const foreign_format redisson_format{"redisson",
                                     &scripts::redisson_attempt,
                                     &scripts::redisson_leave,
                                     &scripts::redisson_renew,
                                     &scripts::redisson_inspect,
                                     redisson_owner,
                                     redisson_token,
                                     redisson_channel,
                                     "~redisson_lock_token:* ~holdfast:*",
                                     "&redisson_lock__channel:*"};

const foreign_format* foreign_format_of(const std::string& dialect) {
  for (const foreign_format* each : {&simple_format, &redisson_format}) {
    if (dialect == each->dialect) return each;
  }
  return nullptr;
}

}  // namespace holdfast::redis
