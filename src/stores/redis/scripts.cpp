
#include "stores/redis/scripts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::redis {

namespace {

// Literals that know their length: clang gives up computing it.
using namespace std::string_view_literals;

struct source {
  std::string_view name;
  std::string_view text;
};

constexpr source sources[] = {
#include "redis_scripts.inc"
};

std::string_view text_of(std::string_view name) {
  const auto* const found = std::ranges::find(sources, name, &source::name);
  if (found == std::end(sources)) throw std::logic_error("no script " + std::string(name));
  return found->text;
}

// The library's files, in the order of their numbers.
std::string rules() {
  std::string text;
  for (const char* const part :
       {"1_state", "2_queue", "3_holders", "4_rules", "5_verbs", "6_calls"}) {
    text += text_of(part);
  }
  return text;
}

constexpr std::string_view library_name = "holdfast_7";

// The calls of the library, as functions and as scripts.
class native_calls {
 public:
  explicit native_calls(channel_id::flavour how)
      : common_(how == channel_id::flavour::sharded ? "1" : "0"),
        rules_(rules()),
        library_(std::make_shared<const library>(library{library_text()})) {}

  [[nodiscard]] script make(const std::string& name, script::gives what = script::gives::nothing,
                            script::batching batched = {},
                            script::repeats again = script::repeats::allowed) const {
    return script(rules_ + "\nreturn calls." + name + "(KEYS, ARGV)\n", what, std::move(batched),
                  {library_, std::string(library_name) + "_" + name}, common_, again);
  }

 private:
  const std::string common_;
  const std::string rules_;
  const std::shared_ptr<const library> library_;
};

// The scripts of the foreign dialects. The verb is the first argument.
class foreign_calls {
 public:
  explicit foreign_calls(channel_id::flavour how) : sharded_(how == channel_id::flavour::sharded) {}

  // On a cluster Redisson's channels are sharded, too, from version 7 of the server on; before, it has no number.
  [[nodiscard]] script operator()(std::string_view dialect, std::string verb,
                                  script::gives what = script::gives::nothing) const {
    constexpr std::string_view plain = "'PUBLISH'";
    constexpr std::string_view by_version = "redis.REDIS_VERSION_NUM and 'SPUBLISH' or 'PUBLISH'";
    std::string text(text_of(dialect));
    for (auto at = text.find(plain); sharded_ && at != text.npos;
         at = text.find(plain, at + by_version.size())) {
      text.replace(at, plain.size(), by_version);
    }
    return script(std::move(text), what, {}, {}, std::move(verb));
  }

  [[nodiscard]] claim_scripts of_claims(std::string_view dialect) const {
    return {(*this)(dialect, "attempt", script::gives::holds), (*this)(dialect, "leave"),
            (*this)(dialect, "renew", script::gives::holds)};
  }

 private:
  const bool sharded_;
};

}  // namespace

std::string library_text() { return "#!lua name=" + std::string(library_name) + "\n" + rules(); }

std::shared_ptr<const scripts> scripts::make(channel_id::flavour how) {
  constexpr auto holds = script::gives::holds;
  // A late downgrade would let readers in beside a writer.
  constexpr auto once = script::repeats::forbidden;
  const native_calls calls(how);
  const foreign_calls foreign(how);
  // In a cluster, the keys of a call must be in one slot.
  const auto batch = how == channel_id::flavour::sharded
                         ? nullptr
                         : std::make_shared<const script>(calls.make("batch", holds));
  return std::make_shared<const scripts>(
      scripts{calls.make("attempt", holds, {batch, 'a'}),
              calls.make("leave", script::gives::nothing, {batch, 'l'}),
              calls.make("renew", holds),
              calls.make("change", holds, {}, once),
              calls.make("transfer", holds),
              calls.make("revoke"),
              calls.make("inspect"),
              calls.make("list"),
              calls.make("latch", holds),
              calls.make("latch_count"),
              calls.make("vote", holds),
              calls.make("version"),
              foreign.of_claims("simple"),
              foreign.of_claims("redisson"),
              foreign.of_claims("redisson_rw"),
              foreign.of_claims("redisson_permits"),
              foreign("simple", "inspect"),
              foreign("redisson", "inspect"),
              foreign("redisson_latch", "set", holds),
              foreign("redisson_latch", "down", holds),
              foreign("redisson_latch", "count")});
}

}  // namespace holdfast::redis
