// The users of the database. Joining as a client: first cleans up after a reboot, another time
// namespace and dead clients, then this client gets its number and its sign of life.
#pragma once

#include "stores/sqlite/descriptor.hpp"
#include "stores/sqlite/ledger.hpp"
#include "stores/sqlite/location.hpp"
#include "stores/sqlite/session.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::sqlite {

// What a reboot ends: the kernel's boot id, and the clock that started with it. Two processes can
// compare times of CLOCK_BOOTTIME only if they run under one boot and in one time namespace.
struct host {
  std::string boot;                  // the kernel's boot id
  std::uint64_t time_namespace = 0;  // 0: the kernel has none
};

// unsupported: there is no /proc to read this from.
result<host> this_host();

// The sign of life: a file that its client keeps locked. The kernel unlocks it when the last
// descriptor of it is closed, however the process ends, and not while it is only stopped. No pid is
// compared, so a reused pid does no harm.
//
// The lock is an OFD lock: it belongs to the open file description, not to the process, so
// that two clients of one process see each other's locks, and closing another descriptor
// of the file drops nothing.
//
// Not thread-safe. Ends with the object, and when the process ends.
class life {
 public:
  static result<life> begin(const folder& at, const std::string& token);

  [[nodiscard]] std::uint64_t inode() const noexcept { return inode_; }
  // Writes the time of this client's last sign of life into the file.
  void speak(spi::server_time now) const noexcept;
  // Writes into the file which socket keeps this client alive in another process.
  void give_away(std::uint64_t parcel) const noexcept;
  // Somebody deleted the file.
  [[nodiscard]] bool deleted() const noexcept;
  // A further descriptor of the same description, close-on-exec, which the caller owns: a child
  // that inherits it keeps this client alive. -1 with errno.
  [[nodiscard]] int share() const noexcept;

 private:
  explicit life(descriptor file, std::uint64_t inode) : file_(std::move(file)), inode_(inode) {}

  descriptor file_;
  std::uint64_t inode_;
};

// Does the client live? A client that has ended never lives again. In doubt (no memory, no
// descriptors left): yes.
bool alive(const folder& at, const peer& client) noexcept;

// When a client last said that it waits; the beginning of time if it never did,
// or if that cannot be read.
spi::server_time last_word(const folder& at, const std::string& token) noexcept;

// Who keeps a client alive whose own process has ended: a process that inherited its sign of life.
//
// "pid 4712 (sleep)", for people. Nothing: the client's own process lives, it never handed its sign
// of life on, or we cannot see who has it (another user's process, another pid namespace).
std::optional<std::string> heir_of(const folder& at, const std::string& token);

struct membership {
  peer self;
  sqlite::life life;
  // Grants that follow the purge of dead clients: to be delivered.
  effects caused;
  std::size_t cleared = 0;  // dead clients
};

// unsupported: the file is in use from another machine, or from another time namespace.
result<membership> join(session& at, const folder& beside, const host& here,
                        const std::string& token, time_point deadline);

// The addresses of clients by their numbers; unknown ones are left out. In a transaction.
std::vector<peer> find_peers(statements& of, const std::vector<std::int64_t>& numbers);

struct purge {
  std::size_t alive = 0;  // others than this client
  std::vector<peer> purged;
};
// Removes everything of dead clients from the database. In a write transaction; their files
// must be removed after it.
purge purge_dead(ledger& book, statements& of, const folder& beside, std::int64_t self,
                 effects& out);
void remove_files(const folder& beside, const std::vector<peer>& purged) noexcept;

}  // namespace holdfast::sqlite
