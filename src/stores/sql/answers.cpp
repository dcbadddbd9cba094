#include "stores/sql/answers.hpp"

#include "stores/sql/common/names.hpp"

#include <array>
#include <chrono>
#include <utility>

namespace holdfast::sql {

namespace {

tl::unexpected<error> puzzled() {
  return failure(errc::unavailable, "the answer is not one of this version's functions");
}

duration time_of(words& line) { return std::chrono::microseconds(line.number()); }
// None: not blocked.
std::optional<duration> blocked_of(words& line) {
  if (line.rest().empty()) return std::nullopt;  // older tables do not say
  const duration time = time_of(line);
  return time > duration{0} ? std::optional(time) : std::nullopt;
}
spi::server_time instant_of(words& line) { return spi::server_time(time_of(line)); }

errc code_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, errc>, 7> codes{
      {{"lost", errc::lost},
       {"not_held", errc::not_held},
       {"would_deadlock", errc::would_deadlock},
       {"conflict", errc::conflict},
       {"name_conflict", errc::name_conflict},
       {"overloaded", errc::overloaded},
       {"invalid", errc::invalid}}};
  for (const auto& [text, code] : codes) {
    if (text == name) return code;
  }
  return errc::unavailable;
}

error refusal(words& line) {
  const errc code = code_named(line.word());
  return {code, std::string(line.rest())};
}

spi::mode mode_of(words& line) {
  switch (line.number()) {
    case 0:
      return spi::mode::exclusive;
    case 1:
      return spi::mode::shared;
    case 2:
      return spi::mode::permit;
    default:
      line.spoil();
      return spi::mode::exclusive;
  }
}

std::string payload_of(words& line) {
  if (line.rest().empty()) return {};  // an empty payload is not a word
  auto bytes = from_hex(line.word());
  if (!bytes) line.spoil();
  return bytes.value_or(std::string());
}

spi::granted grant_of(words& line, std::optional<duration> asked = std::nullopt) {
  spi::granted grant;
  grant.fence = fence_token(line.number<std::uint64_t>());
  if (asked && line.rest().empty()) {
    grant.ttl = *asked;
    grant.at =
        spi::server_time(std::chrono::microseconds(static_cast<std::int64_t>(grant.fence.value())));
    return grant;
  }
  grant.ttl = time_of(line);
  grant.at = instant_of(line);
  grant.offer = line.number() != 0;
  grant.wanted = line.number() != 0;
  return grant;
}

// Consumes a word that stands for nothing.
bool nothing(words& line) {
  if (!line.rest().starts_with("- ")) return false;
  line.word();
  return true;
}

spi::holder holder_of(words& line) {
  spi::holder holder;
  holder.claim = line.word();
  holder.mode = mode_of(line);
  holder.permits = line.number<std::uint32_t>();
  if (!nothing(line)) holder.fence = fence_token(line.number<std::uint64_t>());
  if (!nothing(line)) holder.remaining = time_of(line);
  if (!nothing(line)) holder.held_for = time_of(line);
  holder.payload = payload_of(line);
  return holder;
}

spi::waiting waiting_of(words& line) {
  spi::waiting waiting;
  waiting.claim = line.word();
  waiting.mode = mode_of(line);
  waiting.permits = line.number<std::uint32_t>();
  waiting.waiting_for = time_of(line);
  waiting.payload = payload_of(line);
  return waiting;
}

result<spi::renewal> renewal_of(std::string_view text) {
  words line(text);
  const std::string_view state = line.word();
  spi::renewal renewal;
  if (state == "r" || state == "h") {
    renewal.state = state == "r" ? spi::hold_state::renewed : spi::hold_state::held;
    if (line.word() != "g") return puzzled();
    renewal.grant = grant_of(line);
    renewal.at = renewal.grant.at;
  } else if (state == "w") {
    renewal.state = spi::hold_state::waiting;
    renewal.recheck_after = time_of(line);
    renewal.at = instant_of(line);
  } else if (state == "l") {
    renewal.state = spi::hold_state::lost;
    renewal.at = instant_of(line);
  } else {
    return puzzled();
  }
  if (!line.fine()) return puzzled();
  return renewal;
}

}  // namespace

std::int64_t microseconds(duration time) noexcept {
  return std::chrono::ceil<std::chrono::microseconds>(time).count();
}

result<spi::outcome> to_outcome(const rows& answer, std::optional<duration> asked) {
  if (answer.size() != 1) return puzzled();
  words line(answer.front());
  const std::string_view kind = line.word();
  if (kind == "e") return tl::unexpected(refusal(line));
  spi::outcome outcome;
  if (kind == "g") {
    outcome = grant_of(line, asked);
  } else if (kind == "b") {
    spi::blocked blocked;
    blocked.queued = line.number() != 0;
    blocked.recheck_after = time_of(line);
    blocked.at = instant_of(line);
    blocked.blocker = payload_of(line);
    outcome = std::move(blocked);
  } else {
    return puzzled();
  }
  if (!line.fine()) return puzzled();
  return outcome;
}

bool is_turned_away(const result<spi::outcome>& answer) noexcept {
  if (!answer) return answer.error() != errc::unavailable;
  const auto* blocked = std::get_if<spi::blocked>(&*answer);
  return blocked != nullptr && !blocked->queued;
}

result<void> check_lock(const std::string& name, const std::string& space) {
  constexpr std::size_t longest_name = 512;
  constexpr std::size_t longest_space = 64;
  if (name.empty() || name.size() > longest_name || space.size() > longest_space ||
      space.find('/') != std::string::npos) {
    return failure(errc::invalid, "a name has 1 to 512 bytes, a namespace at most 64 and no '/'");
  }
  return {};
}

result<fence_token> to_transaction_fence(const std::string& answer, duration wait) {
  words line(answer);
  if (line.word() == "b") {
    return failure(wait > duration{0} ? errc::timed_out : errc::busy, "another transaction has it");
  }
  const auto fence = line.number<std::uint64_t>();
  if (!line.fine()) return puzzled();
  return fence_token(fence);
}

result<spi::granted> to_granted(const rows& answer) {
  auto outcome = to_outcome(answer);
  if (!outcome) return tl::unexpected(std::move(outcome.error()));
  const auto* granted = std::get_if<spi::granted>(&*outcome);
  if (granted == nullptr) return puzzled();
  return *granted;
}

result<spi::departure> to_departure(const rows& answer) {
  if (answer.size() != 1) return puzzled();
  if (answer.front() == "h") return spi::departure::was_holder;
  if (answer.front() == "w") return spi::departure::was_waiting;
  if (answer.front() == "n") return spi::departure::gone;
  return puzzled();
}

result<std::vector<spi::renewal>> to_renewals(const rows& answer, std::size_t count) {
  if (answer.size() != count) return puzzled();
  std::vector<spi::renewal> all;
  all.reserve(count);
  for (const std::string& text : answer) {
    auto one = renewal_of(text);
    if (!one) return tl::unexpected(std::move(one.error()));
    all.push_back(*std::move(one));
  }
  return all;
}

result<spi::resource_state> to_state(const rows& answer) {
  spi::resource_state state;
  for (const std::string& text : answer) {
    words line(text);
    const std::string_view kind = line.word();
    if (kind == "h") {
      state.holders.push_back(holder_of(line));
    } else if (kind == "w") {
      state.waiters.push_back(waiting_of(line));
    } else if (kind == "s") {
      state.blocked_for = blocked_of(line);
    } else {
      return puzzled();
    }
    if (!line.fine()) return puzzled();
  }
  return state;
}

result<std::vector<spi::holder>> to_holders(const rows& answer) {
  auto state = to_state(answer);
  if (!state) return tl::unexpected(std::move(state.error()));
  return std::move(state->holders);
}

result<std::vector<spi::resource_summary>> to_summaries(const rows& answer) {
  std::vector<spi::resource_summary> all;
  all.reserve(answer.size());
  for (const std::string& text : answer) {
    words line(text);
    spi::resource_summary one;
    const std::string key = payload_of(line);
    one.name = resource_of(key).name;
    one.holders = line.number<std::size_t>();
    one.waiters = line.number<std::size_t>();
    one.blocked_for = blocked_of(line);
    if (!line.fine()) return puzzled();
    all.push_back(std::move(one));
  }
  return all;
}

result<spi::latch_state> to_latch(const rows& answer) {
  if (answer.size() != 1) return puzzled();
  words line(answer.front());
  const std::string_view kind = line.word();
  if (kind == "e") return tl::unexpected(refusal(line));
  if (kind != "l") return puzzled();
  if (line.rest() == "-") return spi::latch_state{};
  const auto count = line.number<std::uint32_t>();
  if (!line.fine()) return puzzled();
  return spi::latch_state{count};
}

namespace {

std::optional<spi::event_kind> event_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, spi::event_kind>, 7> kinds{
      {{"queued", spi::event_kind::queued},
       {"granted", spi::event_kind::granted},
       {"renewed", spi::event_kind::renewed},
       {"released", spi::event_kind::released},
       {"expired", spi::event_kind::expired},
       {"withdrawn", spi::event_kind::withdrawn},
       {"forced", spi::event_kind::forced}}};
  for (const auto& [text, kind] : kinds) {
    if (text == name) return kind;
  }
  return std::nullopt;
}

void read_event(words& line, notification& into) {
  const auto kind = event_named(line.word());
  if (!kind) return line.spoil();
  spi::store_event& event = into.event.emplace();
  event.kind = *kind;
  event.mode = mode_of(line);
  if (line.rest().starts_with('-')) {
    line.word();
  } else {
    event.fence = fence_token(line.number<std::uint64_t>());
  }
  event.claim = line.word();
  into.key = payload_of(line);
  event.name = resource_of(into.key).name;
  event.payload = payload_of(line);
}

spi::granted read_grant(words& line) {
  spi::granted grant;
  grant.fence = fence_token(line.number<std::uint64_t>());
  grant.ttl = time_of(line);
  grant.at = instant_of(line);
  grant.offer = true;
  grant.wanted = line.number() != 0;
  return grant;
}

}  // namespace

std::optional<notification> to_notification(std::string_view message) {
  using push = stores::push;
  words line(message);
  const std::string_view kind = line.word();
  notification one;
  if (kind == "e") {
    read_event(line, one);
  } else if (kind == "l") {
    one.key = payload_of(line);
  } else if (kind == "g" || kind == "f" || kind == "w" || kind == "x") {
    const auto id = claim_from_hex(line.word());
    if (!id) return std::nullopt;
    if (kind == "g") {
      one.push = push{push::kind::granted, *id, read_grant(line)};
    } else if (kind == "x") {
      const bool forced = line.word() == "f";
      const char* why = forced ? "released by force" : "revoked: not renewed any more";
      one.push = push{push::kind::gone, *id, std::nullopt, {errc::lost, why}};
    } else {
      one.push = push{kind == "f" ? push::kind::freed : push::kind::wanted, *id};
    }
  } else {
    return std::nullopt;
  }
  if (!line.fine()) return std::nullopt;
  return one;
}

}  // namespace holdfast::sql
