// The words of a torture: what clients do, and what is done to them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::torture {

enum class workload : std::uint8_t { mutex, fair, rw, semaphore, latch, multi, election };

enum class fault : std::uint8_t {
  pause_client,  // SIGSTOP, and SIGCONT later
  kill_client,   // SIGKILL; another takes its place
  pause_server,
  kill_server,  // and started again, with what it kept
  partition,    // a client's bytes are swallowed, its connections stay open
  delay,        // a client's bytes arrive late
  cut,          // a client's connections are reset
  clock_jump,   // a client's wall clock is set
  failover,     // another server becomes master
  script_flush,
  disk_full,
  stop_at_call,  // a client stops at one of its next system calls
  kill_at_call,  // it is killed there
  pause_others,  // all clients but one
  kill_others,
  truncate,  // a reply to a client ends in its middle, and the connection with it
  garble,    // replies to a client begin with a wrong byte
};

inline constexpr std::array all_workloads{workload::mutex,     workload::fair,  workload::rw,
                                          workload::semaphore, workload::latch, workload::multi,
                                          workload::election};

inline constexpr std::array all_faults{
    fault::pause_client, fault::kill_client,  fault::pause_server, fault::kill_server,
    fault::partition,    fault::delay,        fault::cut,          fault::clock_jump,
    fault::failover,     fault::script_flush, fault::disk_full,    fault::stop_at_call,
    fault::kill_at_call, fault::pause_others, fault::kill_others,  fault::truncate,
    fault::garble};

std::string_view to_string(workload which) noexcept;
std::string_view to_string(fault which) noexcept;
std::optional<workload> workload_named(std::string_view text) noexcept;
std::optional<fault> fault_named(std::string_view text) noexcept;

// Carried out inside the client: see lab/clock.
constexpr bool at_call(fault which) noexcept {
  return which == fault::stop_at_call || which == fault::kill_at_call;
}
// Affects one client only; others must not notice.
constexpr bool hits_one_client(fault which) noexcept {
  return which == fault::pause_client || which == fault::kill_client || which == fault::partition ||
         which == fault::delay || which == fault::cut || which == fault::clock_jump ||
         which == fault::truncate || which == fault::garble || at_call(which);
}
// Every client but one.
constexpr bool hits_others(fault which) noexcept {
  return which == fault::pause_others || which == fault::kill_others;
}
// Faults of processes, whatever the engine is.
constexpr bool hits_processes(fault which) noexcept {
  return which == fault::pause_client || which == fault::kill_client || at_call(which) ||
         hits_others(which);
}

}  // namespace holdfast::torture
