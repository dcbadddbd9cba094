// What an error reply means: is it worth trying again, is it about us, is it a matter of topology?
#pragma once

#include "stores/redis/client/reply.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

enum class trouble : std::uint8_t {
  passing,       // the server cannot now: loading, busy, failing over, out of memory or disk
  demoted,       // it is a replica (READONLY): find the master
  denied,        // we may not, or are not who we say
  moved,         // the slot lives elsewhere (MOVED)
  ask,           // this one time ask another node (ASK)
  no_script,     // EVAL it
  wrong_type,    // a foreign value under our key
  unknown_verb,  // too old, renamed, or a proxy
  other,         // a fault of ours, or a script's own
};

trouble classify(const reply& answer) noexcept;

// What the store asks to be granted, for the message of a refusal.
struct grants {
  std::string keys;      // "~holdfast:*"
  std::string channels;  // "&holdfast:*"
};

// passing and demoted are unavailable, denied says what to grant, a wrong type is name_conflict, an
// unknown verb unsupported; the rest is unavailable too, as its outcome is not known. `where`: the
// server. Texts that repeat arguments, among which are secrets, are cut off before them.
error to_error(const reply& answer, std::string_view verb, std::string_view where,
               const grants& wanted = {});

}  // namespace holdfast::redis
