// What one client counts, and where: the numbers behind holdfast::metrics. Counting is a few relaxed atomic
// additions in place; sums that can be derived are (granted: the count of the waits; held: granted less the
// count of the holds), so that a lock that nobody else wants costs eight of them.
//
// Thread-safe.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::core {

using counter = std::atomic<std::uint64_t>;

inline void add(counter& to, std::uint64_t much = 1) noexcept {
  to.fetch_add(much, std::memory_order_relaxed);
}

inline constexpr std::size_t bucket_count = 15;  // and one for everything above
using bucket_bounds = std::array<duration, bucket_count>;

// Waits and holds: from the fastest engine to jobs of an hour.
inline constexpr bucket_bounds long_bounds = [] {
  using std::chrono::microseconds;
  using std::chrono::seconds;
  return bucket_bounds{
      microseconds(100),    microseconds(500),    microseconds(1'000),   microseconds(5'000),
      microseconds(10'000), microseconds(50'000), microseconds(100'000), microseconds(500'000),
      seconds(1),           seconds(5),           seconds(10),           seconds(30),
      seconds(60),          seconds(300),         seconds(3'600)};
}();

// A request and its answer: at most the 5 s of a command.
inline constexpr bucket_bounds short_bounds = [] {
  using std::chrono::microseconds;
  return bucket_bounds{microseconds(100),       microseconds(250),       microseconds(500),
                       microseconds(1'000),     microseconds(2'500),     microseconds(5'000),
                       microseconds(10'000),    microseconds(25'000),    microseconds(50'000),
                       microseconds(100'000),   microseconds(250'000),   microseconds(500'000),
                       microseconds(1'000'000), microseconds(2'500'000), microseconds(5'000'000)};
}();

class histogram {
 public:
  explicit histogram(const bucket_bounds& bounds) noexcept : bounds_(bounds) {}

  void observe(duration took) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept;
  [[nodiscard]] const bucket_bounds& bounds() const noexcept { return bounds_; }
  // Not cumulative; the last counts everything above all bounds.
  [[nodiscard]] std::array<std::uint64_t, bucket_count + 1> buckets() const noexcept;
  [[nodiscard]] duration sum() const noexcept;

 private:
  const bucket_bounds& bounds_;
  std::array<counter, bucket_count + 1> buckets_{};
  counter nanoseconds_{0};
};

inline constexpr std::size_t primitive_count = 6;   // of holdfast::primitive
inline constexpr std::size_t loss_cause_count = 6;  // of holdfast::loss_cause
inline constexpr std::size_t refusal_count = 14;    // of holdfast::errc, which begins with 1

// Of one primitive of an engine, and of one name if names are told apart.
struct series {
  counter asked{0};
  std::array<counter, refusal_count> refused{};  // by errc; 0: any other
  histogram waits{long_bounds};                  // of granted acquisitions
  histogram holds{long_bounds};                  // that have ended
  std::array<counter, loss_cause_count> lost{};

  // Ends before beginnings: never less than zero.
  [[nodiscard]] std::uint64_t held() const noexcept;
  [[nodiscard]] std::uint64_t waiting() const noexcept;
};

// Names that are told apart, up to a limit. Looking up is free of locks.
template <class T>
class name_table {
 public:
  struct entry {
    primitive what;
    std::string name;
    T value;
  };

  explicit name_table(std::size_t limit);
  name_table(const name_table&) = delete;
  name_table& operator=(const name_table&) = delete;
  ~name_table() = default;

  // Null: the limit is reached, and this one is not among them.
  [[nodiscard]] T* find(primitive what, std::string_view name);
  [[nodiscard]] std::vector<const entry*> all() const;

 private:
  [[nodiscard]] std::size_t place(primitive what, std::string_view name) const noexcept;

  const std::size_t limit_;
  std::vector<std::atomic<entry*>> slots_;  // at least twice as many: probing ends at an empty one
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<entry>> entries_;  // guarded by mutex_; never shrinks
};

// Of all clients of one engine that count for the same metrics.
struct engine_numbers {
  engine_numbers(std::string engine, std::size_t names, std::size_t elections);

  const std::string engine;
  const bool by_name;
  std::array<series, primitive_count> all{};  // all locks without a series of their own
  name_table<series> named;
  name_table<std::atomic<std::int64_t>> terms;  // of elections: how many are held here
  counter renewed{0};
  counter renewal_failed{0};
  histogram round_trips{short_bounds};
  // Clients that know whether their engine answers: those that reach it, and those that do not.
  std::atomic<std::int64_t> reached{0};
  std::atomic<std::int64_t> unreached{0};
};

primitive primitive_of(spi::mode mode, spi::role role) noexcept;

// One client's.
class meter {
 public:
  // The numbers live as long as `owner`.
  meter(std::shared_ptr<void> owner, engine_numbers& numbers) noexcept
      : owner_(std::move(owner)), numbers_(numbers) {}
  meter(const meter&) = delete;
  meter& operator=(const meter&) = delete;
  ~meter();

  void asked(primitive what, std::string_view name) noexcept;
  void granted(primitive what, std::string_view name, duration waited) noexcept;
  void refused(primitive what, std::string_view name, errc why) noexcept;
  void released(primitive what, std::string_view name, duration held) noexcept;
  void lost(primitive what, std::string_view name, duration held, loss_cause cause) noexcept;
  void renewed() noexcept { add(numbers_.renewed); }
  void renewal_failed() noexcept { add(numbers_.renewal_failed); }
  void round_trip(duration took) noexcept { numbers_.round_trips.observe(took); }
  void reached(bool now) noexcept;

 private:
  enum class reach : std::uint8_t { unknown, reached, unreached };

  series& of(primitive what, std::string_view name) noexcept;
  void term(primitive what, std::string_view name, int change) noexcept;
  void leave(reach before) noexcept;

  const std::shared_ptr<void> owner_;
  engine_numbers& numbers_;
  std::atomic<reach> reach_{reach::unknown};
};

}  // namespace holdfast::core
