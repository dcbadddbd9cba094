#include <holdfast/observer.hpp>

namespace holdfast {

std::string_view to_string(event_kind kind) noexcept {
  switch (kind) {
    case event_kind::granted:
      return "granted";
    case event_kind::busy:
      return "busy";
    case event_kind::failed:
      return "failed";
    case event_kind::released:
      return "released";
    case event_kind::lost:
      return "lost";
    case event_kind::renewed:
      return "renewed";
    case event_kind::renewal_failed:
      return "renewal_failed";
    case event_kind::release_pending:
      return "release_pending";
    case event_kind::release_abandoned:
      return "release_abandoned";
    case event_kind::self_wait:
      return "self_wait";
    case event_kind::foreign_unlock:
      return "foreign_unlock";
    case event_kind::handed_over:
      return "handed_over";
    case event_kind::callback_threw:
      return "callback_threw";
    case event_kind::engine_unreachable:
      return "engine_unreachable";
    case event_kind::engine_back:
      return "engine_back";
    case event_kind::degraded:
      return "degraded";
  }
  return "unknown";
}

}  // namespace holdfast
