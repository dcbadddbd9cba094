// What the program prints: results on stdout; failures as an exit code and one line on stderr,
// `holdfast: <what> (<engine, command, answer>)`; and, on a terminal, a status line.
#pragma once

#include <holdfast/result.hpp>

#include <tl/expected.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::cli {

namespace exit_code {
inline constexpr int ok = 0;
inline constexpr int no = 1;            // the answer is no
inline constexpr int usage = 2;         // what can be judged without the engine
inline constexpr int inconclusive = 3;  // torture only
inline constexpr int engine = 122;
inline constexpr int lost = 123;
inline constexpr int busy = 124;
inline constexpr int not_executable = 126;
inline constexpr int not_found = 127;
inline constexpr int signalled = 128;  // + the signal's number
}  // namespace exit_code

struct complaint {
  int code = exit_code::usage;
  std::string text;
  std::string answer{};  // the engine's, if it gave one: the part of the text in brackets
};

template <class T>
using outcome = tl::expected<T, complaint>;

// Exit 2. `topic`: the command whose --help says more; may be empty.
tl::unexpected<complaint> usage(const std::string& what, std::string_view topic = {});

// From an error of the library: invalid is usage, not granted is busy, everything else is the
// engine's. `action`: what was asked of the engine, as in "attempt".
complaint from_engine(const std::string& what, std::string_view engine, std::string_view action,
                      const error& answer);

// "sqlite, attempt, held by host:17:backup"
std::string provenance(std::string_view engine, std::string_view action, const error& answer);

// One line on stderr, in one write; prints nothing that a terminal would interpret as a command.
void tell(std::string_view text) noexcept;
int tell(const complaint& complaint) noexcept;  // answers with its code

// All of it, to a descriptor. False: full or closed, as errno says.
bool write_all(int file, std::string_view text) noexcept;
// To stdout.
bool print(std::string_view result) noexcept;
// The same at the end of a command: returns its exit code, and reports what is wrong.
int print_all(std::string_view result) noexcept;
// For people: on stdout too where that is a terminal, else on stderr, so that a pipe gets results only.
void note(std::string_view text) noexcept;

// A line on stderr that is rewritten while something goes on, and wiped at the end; only on a terminal.
class status_line {
 public:
  status_line() = default;
  status_line(const status_line&) = delete;
  status_line& operator=(const status_line&) = delete;
  ~status_line() { wipe(); }

  [[nodiscard]] static bool possible() noexcept;
  // Cut to the width of the terminal: a line that wraps could not be wiped.
  void show(const std::string& text);
  void wipe() noexcept;

 private:
  bool visible_ = false;
};

// "mutex      [####......] 400 of 1000 buyers"
std::string bar_text(const std::string& label, std::size_t done, std::size_t total,
                     const std::string& unit);

}  // namespace holdfast::cli
