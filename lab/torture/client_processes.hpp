// The client processes of a run: started, stopped, killed and replaced, and at the end gathered with
// what they recorded.
#pragma once

#include "runtime/descriptor.hpp"
#include "support/child_process.hpp"
#include "torture/shared_files.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::torture {

class recorder;

// Not thread-safe; used by the thread that made it, with which its processes end. Its own records
// are those that only an observer can write: started, paused, resumed, killed, ended.
class client_processes {
 public:
  // `first`: the assignment of all clients, except process, client and URL. `program`: what to
  // start, with the arguments "torture client FOLDER NUMBER".
  client_processes(std::filesystem::path folder, std::string program, assignment first,
                   std::function<std::string(std::uint32_t)> url_of);
  client_processes(const client_processes&) = delete;
  client_processes& operator=(const client_processes&) = delete;
  ~client_processes();

  void pause(std::uint32_t client);
  void resume(std::uint32_t client);
  void replace(std::uint32_t client);  // kills it
  // At the n-th of its next system calls; until resume().
  void stop_at_call(std::uint32_t client, std::int64_t calls);
  // Likewise, and it is replaced then, or when replace() says so.
  void kill_at_call(std::uint32_t client, std::int64_t calls);
  void set_clock(std::uint32_t client, duration shift);
  // From now on none of their files may grow, or may grow again.
  void forbid_writing(bool forbidden);

  // A client that ended by itself, which none should, and that is not replaced.
  void look_after();
  // Waits until a client ends, for at most this long.
  void watch(duration limit) const;
  // All are told to end, and those that do not are killed and recorded as ended with no status.
  void finish(duration limit);

  [[nodiscard]] std::size_t grants();
  [[nodiscard]] bool killed_any() const noexcept { return killed_; }
  // The process that currently plays this client's part; nobody: none.
  [[nodiscard]] std::int32_t process_of(std::uint32_t client);
  // The records of all processes, by time, with holds numbered consecutively.
  [[nodiscard]] std::vector<sim::record> gather();
  // What the processes wrote to stderr, truncated.
  [[nodiscard]] std::string complaints() const;

 private:
  struct member {
    std::uint32_t client = 0;
    std::int32_t process = 0;
    test::child_process running;
    runtime::descriptor life;  // readable when it has ended
    std::unique_ptr<recorder> history;
    std::size_t counted = 0;
    bool paused = false;
    bool condemned = false;  // its end is expected
    bool stopped_itself = false;
    bool over = false;
  };

  void start(std::uint32_t client);
  member* find(std::uint32_t client);
  static void retire(member& whom);
  void replace(member& whom);
  [[nodiscard]] std::filesystem::path clock_file(const member& whom) const;
  void note(sim::what kind, const member& whom, std::int64_t number = 0);
  [[nodiscard]] sim::moment now() const { return clock::now() - assignment_.start(); }

  const std::filesystem::path folder_;
  const std::string program_;
  assignment assignment_;
  std::function<std::string(std::uint32_t)> url_of_;
  torture::board board_;
  std::vector<std::unique_ptr<member>> members_;  // all that ever were
  std::vector<sim::record> notes_;
  std::size_t grants_ = 0;
  bool killed_ = false;
  bool forbidden_ = false;
};

// A client that did not end: the number of its record `ended`.
inline constexpr std::int64_t never_ended = -1;
inline constexpr std::int64_t signalled = 1000;  // + the signal

}  // namespace holdfast::torture
