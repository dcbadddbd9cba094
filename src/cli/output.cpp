#include "cli/output.hpp"

#include "cli/secrets.hpp"
#include "cli/text.hpp"

#include <limits.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr int patience_with_stderr = 500;  // ms
constexpr std::string_view wipe_line = "\r\x1b[K";

// Writes no more than stderr accepts: a reader that has stopped reading must not keep us from
// obeying a signal. What it does not accept in time is lost, and so is what follows until it reads
// again.
void write_to_stderr(std::string_view text) noexcept {
  static constinit std::atomic<bool> stuck{false};
  while (!text.empty()) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    const bool ready = ::poll(&out, 1, stuck.load() ? 0 : patience_with_stderr) > 0;
    stuck.store(!ready);
    if (!ready) return;
    // A pipe that is ready accepts at least this much.
    const ssize_t written =
        ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written <= 0) return;  // nobody to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

tl::unexpected<complaint> usage(const std::string& what, std::string_view topic) {
  std::string help = "see holdfast ";
  if (!topic.empty()) help += std::string(topic) + " ";
  return tl::unexpected(complaint{exit_code::usage, what + " (" + help + "--help)"});
}

std::string provenance(std::string_view engine, std::string_view action, const error& answer) {
  std::string detail = answer.detail.empty() ? std::string(describe(answer.code)) : answer.detail;
  // Stores begin their details with their own name and the operation: redis, also of rediss://.
  const std::string_view name = std::string_view(detail).substr(0, detail.find_first_of(" ,:"));
  if (!name.empty() && engine.starts_with(name)) return detail;
  return std::string(engine) + ", " + std::string(action) + ", " + detail;
}

complaint from_engine(const std::string& what, std::string_view engine, std::string_view action,
                      const error& answer) {
  int code = exit_code::engine;
  if (answer == errc::invalid) code = exit_code::usage;
  if (answer == errc::busy || answer == errc::timed_out) code = exit_code::busy;
  std::string said = provenance(engine, action, answer);
  const bool no_password = answer.detail.find("without a password") != std::string::npos;
  if (answer == errc::denied || no_password) said += remedy_inside_run();
  return {code, what + " (" + said + ")", said};
}

void tell(std::string_view text) noexcept {
  try {
    const std::string line = "holdfast: " + plain(text) + "\n";
    write_to_stderr(line);
  } catch (...) {
    write_to_stderr("holdfast: no memory\n");
  }
}

int tell(const complaint& complaint) noexcept {
  tell(complaint.text);
  return complaint.code;
}

bool write_all(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool print(std::string_view result) noexcept { return write_all(STDOUT_FILENO, result); }

int print_all(std::string_view result) noexcept {
  if (print(result)) return exit_code::ok;
  return tell(complaint{exit_code::no, std::string("cannot write the answer (stdout, write, ") +
                                           std::strerror(errno) + ")"});
}

void note(std::string_view text) noexcept {
  write_all(::isatty(STDOUT_FILENO) == 1 ? STDOUT_FILENO : STDERR_FILENO, text);
}

bool status_line::possible() noexcept { return ::isatty(STDERR_FILENO) == 1; }

void status_line::show(const std::string& text) {
  if (!possible()) return;
  winsize size{};
  const bool has_width = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  visible_ = true;
  write_to_stderr(std::string(wipe_line) + (has_width ? cut(text, size.ws_col - 1U) : text));
}

void status_line::wipe() noexcept {
  if (std::exchange(visible_, false)) write_to_stderr(wipe_line);
}

std::string bar_text(const std::string& label, std::size_t done, std::size_t total,
                     const std::string& unit) {
  constexpr std::size_t width = 40;
  done = std::min(done, total);
  std::string bar(total == 0 ? 0 : done * width / total, '#');
  bar.resize(width, '.');
  std::array<char, 16> start{};
  std::snprintf(start.data(), start.size(), "%-10s ", label.c_str());
  return start.data() + ("[" + bar + "] ") + std::to_string(done) + " of " + std::to_string(total) +
         " " + unit;
}

}  // namespace holdfast::cli
