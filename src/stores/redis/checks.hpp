// The checks of `doctor` for a Redis server, each from facts to a verdict.
#pragma once

#include "stores/redis/client/options.hpp"
#include "stores/redis/client/server_info.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::redis {

// The value of "name:value" in INFO's answer; empty if it is not there.
std::string_view info_field(std::string_view info, std::string_view name) noexcept;

spi::check check_server(const server_info& server, const std::string& where);
// A node of a cluster does not take the keys of all lanes.
spi::check check_eviction(std::string_view info);
spi::check check_memory(std::string_view info);
// `fsync`: appendfsync; none: not allowed to see it.
spi::check check_persistence(std::string_view info, const std::optional<std::string>& fsync);
spi::check check_replicas(std::string_view info);
// What was refused of what the store needs: "+hset".
spi::check check_permissions(const std::vector<std::string>& refused, const std::string& user);
// ok, or why a subscription was refused.
spi::check check_channels(const std::optional<error>& refusal);
// functions: as functions of a library, else as scripts.
spi::check check_scripts(bool functions, const std::optional<error>& refusal);
// Wall clocks, as times since the epoch: the server read its own at some time between `asked` and `heard`,
// and is ahead of ours at least by that much. An answer that took long says nothing against it.
duration clock_ahead(duration theirs, duration asked, duration heard) noexcept;
// How far the server's wall clock is ahead of ours.
spi::check check_clock(duration ahead);
spi::check check_transport(const server_options& options);
spi::check check_access(const server_options& options);

}  // namespace holdfast::redis
