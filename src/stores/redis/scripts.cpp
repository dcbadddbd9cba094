// See the header.
#include "stores/redis/scripts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::redis {

namespace {

// Literals that know their length: clang gives up counting it.
using namespace std::string_view_literals;

struct source {
  std::string_view name;
  std::string_view text;
};

constexpr source sources[] = {
#include "redis_scripts.inc"
};

script made(std::string_view name, channel_id::flavour how,
            script::gives what = script::gives::nothing, script::bundling bundled = {}) {
  const auto* const found = std::ranges::find(sources, name, &source::name);
  if (found == std::end(sources)) throw std::logic_error("no script " + std::string(name));
  std::string text(found->text);
  constexpr std::string_view classic = "local sharded = false";
  const auto at = text.find(classic);
  if (how == channel_id::flavour::sharded && at != std::string::npos) {
    // Redis before 7 has no sharded channels, and does not tell its version to scripts. While a
    // slot is being moved, a call with two keys, one of which never exists, is refused by both
    // nodes: some of the keys that follow may be here and some there.
    text.replace(at, classic.size(),
                 "local sharded = redis.REDIS_VERSION_NUM ~= nil\n"
                 "redis.call('EXISTS', KEYS[1], KEYS[1] .. '/')");
  }
  return script(std::move(text), what, std::move(bundled));
}

}  // namespace

std::shared_ptr<const scripts> scripts::make(channel_id::flavour how) {
  constexpr auto holds = script::gives::holds;
  const auto bundle = std::make_shared<const script>(made("bundle", how, holds));
  return std::make_shared<const scripts>(scripts{
      made("attempt", how, holds, {bundle, 'a'}),
      made("leave", how, script::gives::nothing, {bundle, 'l'}), made("renew", how, holds),
      made("change", how, holds), made("revoke", how), made("inspect", how), made("list", how),
      made("latch", how, holds), made("vote", how, holds), made("raise", how, holds),
      made("simple_attempt", how, holds), made("simple_leave", how),
      made("simple_renew", how, holds), made("simple_inspect", how),
      made("redisson_attempt", how, holds), made("redisson_leave", how),
      made("redisson_renew", how, holds), made("redisson_inspect", how)});
}

}  // namespace holdfast::redis
