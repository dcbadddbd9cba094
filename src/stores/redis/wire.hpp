// Claims, answers, pushes and events as the scripts write and read them.
#pragma once

#include "stores/redis/client/reply.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::redis {

// Big-endian fields, as Lua's struct.pack and struct.unpack write and read them.

// Every request is written by one of these: fields are stored in place, without a growing
// string's checks for each byte.
class byte_writer {
 public:
  explicit byte_writer(std::size_t expected) : bytes_(expected, '\0') {}

  byte_writer& text(std::string_view value) {
    std::copy(value.begin(), value.end(), room(value.size()));
    return *this;
  }
  byte_writer& small(std::uint8_t value) { return whole<1>(value); }
  byte_writer& medium(std::uint16_t value) { return whole<2>(value); }
  byte_writer& number(std::uint32_t value) { return whole<4>(value); }
  // Microseconds and fences: whole numbers below 2^53, exact in Lua's doubles.
  byte_writer& real(double value) { return whole<8>(std::bit_cast<std::uint64_t>(value)); }
  // Preceded by its length.
  byte_writer& counted(std::string_view value) {
    medium(static_cast<std::uint16_t>(value.size()));
    return text(value);
  }

  [[nodiscard]] std::string take() {
    bytes_.resize(written_);
    return std::move(bytes_);
  }

 private:
  // Where the next bytes go.
  char* room(std::size_t size) {
    if (bytes_.size() - written_ < size) grow(size);
    char* const here = bytes_.data() + written_;
    written_ += size;
    return here;
  }
  template <unsigned Size>
  byte_writer& whole(std::uint64_t value) {
    char* const to = room(Size);
    for (unsigned i = 0; i < Size; ++i) to[i] = static_cast<char>(value >> (8 * (Size - 1 - i)));
    return *this;
  }

  void grow(std::size_t size);  // separate, so that the rest is inlined

  std::string bytes_;
  std::size_t written_ = 0;
};

// Reading beyond the end gives zeros and empty texts, and ok() is false from then on.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) noexcept : rest_(bytes) {}

  [[nodiscard]] bool ok() const noexcept { return ok_; }
  [[nodiscard]] bool more() const noexcept { return ok_ && !rest_.empty(); }

  std::string_view text(std::size_t size) noexcept {
    if (rest_.size() < size) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  std::uint8_t small() noexcept { return static_cast<std::uint8_t>(whole(1)); }
  std::uint16_t medium() noexcept { return static_cast<std::uint16_t>(whole(2)); }
  std::uint32_t number() noexcept { return static_cast<std::uint32_t>(whole(4)); }
  double real() noexcept { return std::bit_cast<double>(whole(8)); }
  std::string_view counted() noexcept { return text(medium()); }

 private:
  std::uint64_t whole(std::size_t size) noexcept {
    std::uint64_t value = 0;
    for (const char c : text(size)) value = value << 8U | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

using microseconds = std::chrono::duration<std::int64_t, std::micro>;

spi::server_time to_server_time(std::int64_t microseconds_since_1970) noexcept;

// What a script gets to know of a claim.
struct sender {
  std::string process;  // 16 characters
  duration offer;
};
// A new name for a client: 16 random hexadecimal digits.
std::string new_process_name(spi::runtime& runtime);

enum class queueing : std::uint8_t { allowed, forbidden };
std::string claim_bytes(const spi::claim& claim, const sender& from, queueing how,
                        std::optional<spi::server_time> not_after);
// For a claim that leaves. The server's Lua takes a nanosecond or two for
// each byte that it is given.
std::string leaving_bytes(const spi::claim& claim, const sender& from);

// A script's answer begins with a number, usually followed by the server's time. A number alone is
// that time, or 0 if the script did not read the clock: the usual outcome. A string begins with
// that time too: an attempt is blocked, which is as common as a grant.
struct script_answer {
  std::int64_t kind = 0;  // negative: refused
  spi::server_time at{};
  const std::vector<reply>* fields = nullptr;  // null: a number alone, kind 1; or a string, kind 0
  std::string_view packed;                     // what follows the time in a string
  bool repeated = false;                       // see reply

  [[nodiscard]] bool dated() const noexcept { return at != spi::server_time{}; }
  [[nodiscard]] std::int64_t number(std::size_t index) const noexcept;
  [[nodiscard]] std::string_view text(std::size_t index) const noexcept;
};
// unavailable: unexpected answer.
result<script_answer> answer_of(const reply& from);

// Why a script refused, as an error. `number`: of the refusal.
error refusal_of(const script_answer& from, const spi::claim* claim);

spi::granted granted_of(const script_answer& from, std::size_t first);
result<spi::outcome> outcome_of(const script_answer& from, const spi::claim& claim);
// For one claim: its five fields, a refusal or an error.
spi::renewal renewal_of(const reply& from, spi::server_time at);

// For one claim that was raised or renewed: it holds, or lost, or unavailable.
result<spi::granted> grant_of(const spi::renewal& answer);
// Detects two members that are the same server; 0: unknown.
std::uint64_t server_number(std::string_view run_id) noexcept;

// How long a resource stays blocked after an abnormal end; 0: it is not.
inline std::optional<duration> blocked_of(std::int64_t micro) noexcept {
  return micro > 0 ? std::optional<duration>(microseconds(micro)) : std::nullopt;
}

struct stored_holder {
  spi::claim_id id;
  spi::holder shown;
};
std::optional<stored_holder> holder_of(std::string_view bytes, spi::server_time now);
std::optional<spi::waiting> waiter_of(std::string_view bytes, spi::server_time now);

// A message from the server to a process.
struct push {
  enum class kind : std::uint8_t { granted, wanted, gone };
  kind what = kind::wanted;
  spi::claim_id claim;
  spi::granted grant;   // with granted
  bool forced = false;  // with gone: at once, not only without renewal
};
// Stops at the first unknown message.
std::vector<push> pushes_of(std::string_view message);

struct event_message {
  spi::resource_id resource;
  std::vector<spi::store_event> events;
};
std::optional<event_message> events_of(std::string_view message);

// What is known of the server's clock: the latest time that it can show by now, so that a request
// can carry a time after which it must not be executed.

// Thread-safe.
class server_times {
 public:
  // A request sent at `sent` was answered at `received` by a server whose clock said `at`.
  void learn(time_point sent, time_point received, spi::server_time at) noexcept {
    const std::lock_guard lock(mutex_);
    if (known_) check(sent, received, at);
    known_ = moment{sent, received, at};
  }

  // Not before what the server's clock shows at `when`, with room for clocks
  // that run at different rates.
  [[nodiscard]] std::optional<spi::server_time> latest(time_point when) const noexcept {
    const std::lock_guard lock(mutex_);
    if (!known_) return std::nullopt;
    const duration passed = when - known_->sent;
    return known_->at + passed + passed / rate + slack;
  }

  // How often the server's clock diverged from ours by more than rates and travel times explain.
  [[nodiscard]] std::uint64_t jumps() const noexcept {
    return jumps_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr duration::rep rate = 100;  // 1 %
  static constexpr duration slack = std::chrono::milliseconds(50);

  struct moment {
    time_point sent;
    time_point received;
    spi::server_time at;
  };

  // Answers overtake each other among threads: only what no order could explain is a jump.
  void check(time_point sent, time_point received, spi::server_time at) noexcept {
    const duration passed = at - known_->at;
    const duration most = received - known_->sent;
    const duration least = sent - known_->received;
    if (passed > most + most / rate + slack || passed < least - least / rate - slack) {
      jumps_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  mutable std::mutex mutex_;
  std::optional<moment> known_;  // guarded by mutex_
  std::atomic<std::uint64_t> jumps_{0};
};

// One renewal that is sent to the servers in parts: the last part to be answered completes it.

// Thread-safe where each answer is written by one part only. `missing` begins at one, for the
// sender of the parts, which calls arrived() when all are sent.
struct renewing {
  renewing(std::size_t claims, spi::completion<std::vector<spi::renewal>> completion)
      : answers(claims), done(std::move(completion)) {}

  void arrived() {
    if (missing.fetch_sub(1, std::memory_order_acq_rel) == 1) done(std::move(answers));
  }

  std::vector<spi::renewal> answers;
  std::atomic<std::size_t> missing{1};
  spi::completion<std::vector<spi::renewal>> done;
};

}  // namespace holdfast::redis
