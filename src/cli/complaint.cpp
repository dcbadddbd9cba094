#include "cli/complaint.hpp"

#include "cli/passed_url.hpp"
#include "cli/plain_text.hpp"

#include <unistd.h>

namespace holdfast::cli {

tl::unexpected<complaint> usage(const std::string& what, std::string_view topic) {
  std::string help = "see holdfast ";
  if (!topic.empty()) help += std::string(topic) + " ";
  return tl::unexpected(complaint{exit_code::usage, what + " (" + help + "--help)"});
}

std::string provenance(std::string_view engine, std::string_view action, const error& answer) {
  std::string detail = answer.detail.empty() ? std::string(describe(answer.code)) : answer.detail;
  // Stores begin their details with their own name and the operation.
  if (detail.starts_with(std::string(engine) + ",")) return detail;
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
    // Nobody to tell if this fails.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  } catch (...) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, "holdfast: no memory\n", 20);
  }
}

int tell(const complaint& complaint) noexcept {
  tell(complaint.text);
  return complaint.code;
}

}  // namespace holdfast::cli
