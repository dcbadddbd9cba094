// The names of keys. A claim is <root><name>/<id>, as in Go's Mutex, Election and `etcdctl lock`,
// so that all of them exclude each other; readers and writers are named as Go's RWMutex names them.
#pragma once

#include "stores/etcd/options.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::etcd {

// A name as part of a key: '%' is written %25 and '/' %2F (with layout=path '/' stays).
std::string encoded(std::string_view name, name_layout layout);
// Nothing if it is not such a text: then it is not a name.
std::optional<std::string> decoded(std::string_view text, name_layout layout);

// What all keys of a namespace begin with: root, or root%%<namespace>/. No
// name is encoded like that.
std::string space_prefix(const server_options& options, const std::string& space);
// What all keys of a resource begin with: it ends with '/'.
std::string prefix_of(const server_options& options, const spi::resource_id& resource);
// Of a claim that was left while one of its requests may still arrive.
std::string tombstone_of(const server_options& options, const spi::claim_id& id);

enum class claim_kind : std::uint8_t {
  lock,    // <id>: a mutex, or a candidate
  writer,  // write/<id>
  reader,  // read/<id>
  permit,  // permit/<id>
};

enum class key_part : std::uint8_t {
  claim,    // its place in the queue
  mode,     // what it has changed to: "shared" or "exclusive"
  revoked,  // its holder is asked to end
  owner,    // of a claim that was handed on: the claim that has the key now
  latch,    // the count of a latch, or a mark of a count-down
};

inline constexpr std::string_view latch_folder = "latch/";
inline constexpr std::string_view latch_count_key = "latch/count";
inline constexpr std::string_view latch_marks = "latch/done/";

struct parsed_key {
  key_part part{};
  claim_kind kind{};  // of a mode key: any, the id decides
  std::string id;
};
// `rest`: of a key, after the prefix of its resource. Nothing if it is not one of these.
std::optional<parsed_key> parse_key(std::string_view rest);

// The name that this may be a key of, and the rest. `rest`: after the prefix of the namespace.
struct named_key {
  std::string name;
  std::string rest;
};
std::optional<named_key> name_in(std::string_view rest, name_layout layout);

std::string_view folder_of(claim_kind kind) noexcept;
// The key of a claim, and of its parts.
std::string claim_key(const std::string& prefix, claim_kind kind, const std::string& id);
// For a reader below write/: so that Go's readers see that it writes.
std::string mode_key(const std::string& prefix, claim_kind kind, const std::string& id);
std::string revoked_key(const std::string& prefix, claim_kind kind, const std::string& id);
std::string owner_key(const std::string& claim_key);
// The value of an owner key: the whole id, and whether the claim is on its
// way between two processes.
std::string owner_text(const spi::claim& claim);
bool is_detached(std::string_view owner_text) noexcept;

// How a claim is shown to people: by its public id if it is ours, else the text itself.
std::string id_text(const std::string& id);
// A reused key says in its value whose it is now.
std::string with_owner(std::string value, const spi::claim_id& owner);
std::optional<std::string> owner_in(std::string_view value);  // the public id
std::optional<spi::claim_id> parse_id(std::string_view id);   // none: not ours

}  // namespace holdfast::etcd
