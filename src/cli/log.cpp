#include "cli/log.hpp"

#include "cli/complaint.hpp"
#include "cli/number_text.hpp"

#include <string>

namespace holdfast::cli {

namespace {

// What the program tells anyway in its own words (lost, busy, failed) is only repeated on demand.
log_level level_of(event_kind kind) {
  switch (kind) {
    case event_kind::renewal_failed:
    case event_kind::release_abandoned:
    case event_kind::degraded:
      return log_level::warn;
    case event_kind::granted:
    case event_kind::busy:
    case event_kind::failed:
    case event_kind::released:
    case event_kind::lost:
    case event_kind::release_pending:
    case event_kind::engine_unreachable:
    case event_kind::engine_back:
      return log_level::info;
    case event_kind::renewed:
    case event_kind::self_wait:
    case event_kind::foreign_unlock:
    case event_kind::handed_over:
    case event_kind::callback_threw:
      return log_level::debug;
  }
  return log_level::debug;
}

std::string_view label(log_level level) {
  switch (level) {
    case log_level::warn:
      return "warning: ";
    case log_level::info:
      return "info: ";
    case log_level::debug:
      return "debug: ";
    default:
      return "";
  }
}

}  // namespace

void log::on_event(const event& event) {
  if (event.kind == event_kind::lost && event.cause != nullptr) {
    const std::lock_guard lock(mutex_);
    loss_ = *event.cause;
  }
  const log_level level = level_of(event.kind);
  if (level > level_) return;
  std::string line(label(level));
  line += to_string(event.kind);
  if (!event.name.empty()) line += " '" + std::string(event.name) + "'";
  if (!event.claim.empty()) line += " claim " + std::string(event.claim);
  if (event.fence.value() != 0) line += " fence " + std::to_string(event.fence.value());
  if (event.took > duration{0}) line += " after " + to_text(event.took);
  if (event.cause != nullptr) line += ": " + event.cause->message();
  tell(line);
}

std::optional<error> log::loss() const {
  const std::lock_guard lock(mutex_);
  return loss_;
}

}  // namespace holdfast::cli
