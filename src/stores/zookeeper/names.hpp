// Where a resource is in ZooKeeper's tree, and what the nodes below it are called: the names of
// Curator, or of kazoo, so that both exclude each other.
#pragma once

#include "stores/zookeeper/options.hpp"

#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::zookeeper {

// One component of a path: percent-encoding outside [A-Za-z0-9._-], and of the first byte where the
// text would mean something else there ("..", "locks", "_c_...").
std::string encoded(std::string_view name);
// Nothing if it is not such a text: then it is not a name.
std::optional<std::string> decoded(std::string_view component);

// Of the namespaces with layout=path; no name is encoded like that.
inline constexpr std::string_view spaces_folder = "_holdfast_namespaces";

// root / [namespace /] name; with layout=path root / [_holdfast_namespaces / namespace /] name.
std::string folder_of(const server_options& options, const std::string& space);
std::string path_of(const server_options& options, const spi::resource_id& resource);

// Children of a resource that are not claims.
inline constexpr std::string_view locks_folder = "locks";    // of a semaphore: who is next
inline constexpr std::string_view leases_folder = "leases";  // of a semaphore: who has a permit
inline constexpr std::string_view count_node = "_holdfast_latch";
// Where claims may be: in the name's own folder, and in these folders of locks and of leases.
inline std::vector<std::string> folders_of(const std::string& path) {
  return {path, path + "/" + std::string(locks_folder), path + "/" + std::string(leases_folder)};
}

enum class claim_kind : std::uint8_t {
  lock,    // InterProcessMutex
  writer,  // InterProcessReadWriteLock
  reader,
  leader,  // LeaderLatch
  lease,   // InterProcessSemaphoreV2
};

// The data of a node whose holder is asked to release it: written by Curator's
// Revoker, and by `revoke`.
inline constexpr std::string_view revoke_message = "__REVOKE__";

// "lock-", "__WRIT__", ...
std::string_view stem_of(claim_kind kind) noexcept;

// "_c_<id as a UUID>-<stem>", or kazoo's "<id as hex>__lock__": as requested; the server
// appends the sequence number.
std::string prefix_of(node_naming naming, const spi::claim_id& id, claim_kind kind);
// The prefix of every node of the claim.
std::string protection_of(node_naming naming, const spi::claim_id& id);

struct claim_node {
  std::string name;  // the whole name
  claim_kind kind{};
  std::int32_t sequence = 0;
  std::optional<spi::claim_id> id;  // none: made without protection

  // In the queue before the other. The 32-bit counter may have wrapped in between.
  [[nodiscard]] bool before(const claim_node& other) const noexcept {
    const auto gap = static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) -
                                               static_cast<std::uint32_t>(other.sequence));
    if (gap != 0) return gap < 0;
    return kind == claim_kind::writer && other.kind != claim_kind::writer;
  }
  [[nodiscard]] bool excludes() const noexcept { return kind != claim_kind::reader; }
};

// Of Curator, of kazoo (its Lock is its WriteLock) or of ours. Nothing for any other child: a stray
// one has no place in the queue.
std::optional<claim_node> parse_node(std::string_view name);
// How the claim is shown to people.
std::string id_text(const claim_node& node);

// The sequence number as the server writes it.
std::string sequence_text(std::int32_t sequence);

}  // namespace holdfast::zookeeper
