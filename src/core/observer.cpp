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

std::string_view to_string(primitive kind) noexcept {
  switch (kind) {
    case primitive::none:
      return "none";
    case primitive::mutex:
      return "mutex";
    case primitive::reader:
      return "reader";
    case primitive::writer:
      return "writer";
    case primitive::semaphore:
      return "semaphore";
    case primitive::election:
      return "election";
  }
  return "unknown";
}

std::string_view to_string(loss_cause cause) noexcept {
  switch (cause) {
    case loss_cause::none:
      return "none";
    case loss_cause::unconfirmed:
      return "unconfirmed";
    case loss_cause::ended:
      return "ended";
    case loss_cause::taken:
      return "taken";
    case loss_cause::max_hold:
      return "max_hold";
    case loss_cause::closed:
      return "closed";
  }
  return "unknown";
}

}  // namespace holdfast
