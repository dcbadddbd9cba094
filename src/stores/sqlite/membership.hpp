// Entering the database as a client: first what a reboot, another time namespace and dead clients
// left behind is put in order, then this client gets its number and its sign of life.
#pragma once

#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/life.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/session.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::sqlite {

// What ends at a reboot: the kernel's boot id, and the clock that started with it. Two processes
// can compare times of CLOCK_BOOTTIME only if they run under one boot and in one time namespace.
struct host {
  std::string boot;                  // the kernel's boot id
  std::uint64_t time_namespace = 0;  // 0: the kernel has none

  friend bool operator==(const host&, const host&) = default;
};

// unsupported: there is no /proc to read it from.
result<host> this_host();

struct membership {
  // Dead clients that one open clears away.
  static constexpr std::size_t purge_limit = 64;

  peer self;
  sqlite::life life;
  // Who is let in where a dead client was: to be delivered.
  effects caused;
  std::size_t cleared = 0;  // dead clients
};

// unsupported: the file is in use from another machine, or from another time namespace.
result<membership> join(session& at, const folder& beside, const host& here,
                        const std::string& token, time_point deadline);

// The addresses of clients by their numbers; those that are unknown are left out. In a transaction.
std::vector<peer> find_peers(statements& of, const std::vector<std::int64_t>& numbers);

struct purge {
  std::size_t alive = 0;  // others than this client
  std::vector<peer> purged;
};
// Takes everything of dead clients out of the database, at most purge_limit of them. In a write
// transaction; their files are to be removed after it.
purge purge_dead(ledger& book, statements& of, const folder& beside, std::int64_t self,
                 effects& out);
void remove_files(const folder& beside, const std::vector<peer>& purged) noexcept;

}  // namespace holdfast::sqlite
