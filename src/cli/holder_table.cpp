#include "cli/holder_table.hpp"

#include "cli/json.hpp"
#include "cli/number_text.hpp"
#include "cli/plain_text.hpp"

namespace holdfast::cli {

namespace {

std::string mode_text(spi::mode mode, std::uint32_t permits) {
  std::string text(name_of(mode));
  if (mode == spi::mode::permit && permits > 1) text += " x" + std::to_string(permits);
  return text;
}

std::string ttl_text(const spi::holder& one) {
  if (one.remaining) return to_text(*one.remaining);
  return one.by_session ? "session" : "none";
}

std::string who(const spi::holder& one) {
  if (one.kept_by.empty()) return one.payload;
  return one.payload + ", ended; held by " + one.kept_by;
}

}  // namespace

std::string holder_table(const std::vector<spi::holder>& holders,
                         std::chrono::system_clock::time_point now) {
  if (holders.empty()) return {};
  std::vector<std::vector<std::string>> rows{
      {"HOLDER", "MODE", "SINCE", "TTL", "FENCE", "PAYLOAD"}};
  for (const spi::holder& one : holders) {
    using wall = std::chrono::system_clock;
    rows.push_back(
        {one.claim, mode_text(one.mode, one.permits),
         one.held_for ? rfc3339(now - std::chrono::duration_cast<wall::duration>(*one.held_for))
                      : "?",
         ttl_text(one), one.fence ? std::to_string(one.fence->value()) : "?", plain(who(one))});
  }
  return columns(rows, {4});
}

std::string waiter_table(const std::vector<spi::waiting>& waiters) {
  if (waiters.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"WAITER", "MODE", "WAITING", "PAYLOAD"}};
  for (const spi::waiting& one : waiters) {
    rows.push_back({one.claim, mode_text(one.mode, one.permits),
                    one.waiting_for ? to_text(*one.waiting_for) : "?", plain(one.payload)});
  }
  return columns(rows);
}

}  // namespace holdfast::cli
