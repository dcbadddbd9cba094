#include "cli/complaint.hpp"

#include "cli/passed_url.hpp"
#include "cli/plain_text.hpp"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace holdfast::cli {

namespace {

constexpr int patience_with_stderr = 500;  // ms

// Writes no more than stderr takes: a reader that has stopped reading must keep nobody from obeying a
// signal. What it does not take in time is lost, and so is what follows until it reads again.
void write_to_stderr(std::string_view text) noexcept {
  static constinit std::atomic<bool> stuck{false};
  while (!text.empty()) {
    pollfd out{STDERR_FILENO, POLLOUT, 0};
    const bool ready = ::poll(&out, 1, stuck.load() ? 0 : patience_with_stderr) > 0;
    stuck.store(!ready);
    if (!ready) return;
    // A pipe that is ready takes at least so much.
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

}  // namespace holdfast::cli
