#include <holdfast/observer.hpp>

#include <array>
#include <cstddef>

namespace holdfast {

namespace {

// The words of an enumeration, in the order of the enumerators, of which Last is the last.
template <auto Last>
using words_until = std::array<std::string_view, static_cast<std::size_t>(Last) + 1>;

template <class Enumeration, std::size_t Count>
constexpr std::string_view word_for(Enumeration value,
                                    const std::array<std::string_view, Count>& words) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < Count && !words[index].empty() ? words[index] : "unknown";
}

constexpr words_until<event_kind::degraded> event_words{
    "granted",        "busy",           "failed",          "released",           "lost",
    "renewed",        "renewal_failed", "release_pending", "release_abandoned",  "self_wait",
    "foreign_unlock", "handed_over",    "callback_threw",  "engine_unreachable", "engine_back",
    "degraded"};
constexpr words_until<primitive::election> primitive_words{"none",   "mutex",     "reader",
                                                           "writer", "semaphore", "election"};
constexpr words_until<loss_cause::closed> cause_words{"none",  "unconfirmed", "ended",
                                                      "taken", "max_hold",    "closed"};

}  // namespace

std::string_view to_string(event_kind kind) noexcept { return word_for(kind, event_words); }
std::string_view to_string(primitive kind) noexcept { return word_for(kind, primitive_words); }
std::string_view to_string(loss_cause cause) noexcept { return word_for(cause, cause_words); }

}  // namespace holdfast
