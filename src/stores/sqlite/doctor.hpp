// The checks of `doctor`, each turning a fact into a verdict.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::sqlite {

spi::check check_file(const result<void>& in_place, const std::string& path);
spi::check check_format(std::int64_t application, std::int64_t version);
spi::check check_file_system(long magic);
// Of the database and of the folder beside it.
spi::check check_permissions(mode_t file, mode_t folder);
spi::check check_space(std::uint64_t free_bytes);
spi::check check_journal(const std::string& mode, std::int64_t synchronous);
spi::check check_integrity(const std::string& answer);
// How long a transaction under the writer lock took, or why there was none.
spi::check check_writer_lock(const result<duration>& took);
spi::check check_life(bool alive, bool deleted);
spi::check check_wake_ups(bool reachable);
spi::check check_clients(std::size_t alive, std::size_t cleared);
spi::check check_sharing(uid_t owner, uid_t self);

}  // namespace holdfast::sqlite
