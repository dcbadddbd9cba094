// Lists the resources that have holders or waiters: finds all keys on every node, some at a time
// since most names may be idle, and asks each partition how many hold and wait.
#include "stores/redis/native_store.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace holdfast::redis {

namespace {

constexpr std::size_t keys_in_a_call = 100;

// One listing under way; keeps itself alive until it is answered. It looks for some keys, asks all
// partitions about them at the same time, then looks for more.
class listing : public std::enable_shared_from_this<listing> {
 public:
  // With more names that are held or waited for, the answer is overloaded.
  static constexpr std::size_t names_at_most = 100'000;
  // For the whole listing: a server may have millions of keys. Each answer is waited for as
  // long as the caller says.
  static constexpr duration longest = std::chrono::seconds(60);

  using summaries = std::vector<spi::resource_summary>;
  // `what`: namespace, and the prefix of the names.
  listing(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
          std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
          const net::patience& until, spi::completion<summaries> done);
  void start();

 private:
  // Keys that are found before their partitions are asked.
  static constexpr std::size_t keys_at_once = 20'000;

  [[nodiscard]] net::patience next_answer() const;
  void scan();
  void scanned(const result<reply>& answer);
  void count();
  void counted(const std::vector<std::string>& keys, const result<reply>& answer);
  result<void> take(const std::vector<std::string>& keys, const result<reply>& answer);
  void finish();
  void fail(error why);

  const std::shared_ptr<topology> topology_;
  const std::shared_ptr<const scripts> scripts_;
  const std::shared_ptr<const spi::runtime> clock_;
  const spi::resource_id what_;
  const std::string pattern_;
  const net::patience first_;  // for the first answer
  const duration for_an_answer_;
  const time_point end_;
  spi::completion<summaries> done_;
  std::vector<std::shared_ptr<node>> nodes_;  // still to be scanned
  std::string cursor_ = "0";
  std::map<partition, std::set<std::string>> keys_;
  std::size_t found_ = 0;  // keys_ of all partitions

  std::mutex mutex_;
  std::size_t missing_ = 0;       // answers of partitions; guarded by mutex_
  std::optional<error> failure_;  // guarded by mutex_
  summaries list_;                // guarded by mutex_ while partitions are asked
};

}  // namespace

listing::listing(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                 std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
                 const net::patience& until, spi::completion<summaries> done)
    : topology_(std::move(servers)),
      scripts_(std::move(with)),
      clock_(std::move(clock)),
      what_(std::move(what)),
      pattern_(state_pattern(what_.space, what_.name)),
      first_(until),
      for_an_answer_(until.deadline - clock_->now()),
      end_(clock_->now() + longest),
      done_(std::move(done)) {}

void listing::start() {
  topology_->ready(first_, [self = shared_from_this()](const result<void>& known) {
    if (!known) return self->fail(known.error());
    self->nodes_ = self->topology_->nodes();
    self->scan();
  });
}

void listing::fail(error why) { done_(tl::unexpected(std::move(why))); }

net::patience listing::next_answer() const {
  net::patience next = first_;
  next.deadline = std::min(clock_->now() + for_an_answer_, end_);
  return next;
}

void listing::scan() {
  if (nodes_.empty()) return finish();
  nodes_.back()->send(
      command{"SCAN", cursor_, "MATCH", pattern_, "COUNT", "1000"}, next_answer(),
      [self = shared_from_this()](const result<reply>& answer) { self->scanned(answer); });
}

void listing::scanned(const result<reply>& answer) {
  if (!answer) return fail(answer.error());
  if (answer->is_error()) {
    return fail(to_error(*answer, "SCAN", nodes_.back()->where(), {"~holdfast:*", ""}));
  }
  if (answer->elements.size() < 2) return fail({errc::unavailable, "SCAN: unexpected reply"});
  for (const reply& key : answer->elements[1].elements) {
    const auto parsed = parse_state(key.words());
    if (parsed && keys_[parsed->partition].insert(std::string(key.words())).second) ++found_;
  }
  cursor_ = answer->elements[0].words();
  if (cursor_ == "0") nodes_.pop_back();
  if (found_ < keys_at_once && !nodes_.empty()) return scan();
  count();
}

void listing::count() {
  std::vector<std::pair<partition, std::vector<std::string>>> calls;
  for (auto& [which, keys] : keys_) {
    while (!keys.empty()) {
      auto& call = calls.emplace_back(which, std::vector<std::string>()).second;
      while (!keys.empty() && call.size() < keys_in_a_call) {
        call.push_back(std::move(keys.extract(keys.begin()).value()));
      }
    }
  }
  keys_.clear();
  found_ = 0;
  if (calls.empty()) return scan();
  {
    const std::lock_guard lock(mutex_);
    missing_ = calls.size();
  }
  const net::patience until = next_answer();
  for (auto& [which, keys] : calls) {
    std::vector<std::string_view> words(keys.begin(), keys.end());
    words.push_back(observed_key(which));
    topology_->run(which, scripts_->list, words, {}, until,
                   [self = shared_from_this(), keys](const result<reply>& answer) {
                     self->counted(keys, answer);
                   });
  }
}

// SCAN may give a key twice, and a slot that moves meanwhile is on two nodes.
void listing::finish() {
  std::ranges::sort(list_, {}, &spi::resource_summary::name);
  const auto twice = std::ranges::unique(list_, {}, &spi::resource_summary::name);
  list_.erase(twice.begin(), twice.end());
  done_(std::move(list_));
}

void listing::counted(const std::vector<std::string>& keys, const result<reply>& answer) {
  {
    const std::lock_guard lock(mutex_);
    if (auto taken = take(keys, answer); !taken && !failure_) failure_ = taken.error();
    if (--missing_ > 0) return;
  }
  if (failure_) return fail(*failure_);
  scan();
}

// Called with the mutex held.
result<void> listing::take(const std::vector<std::string>& keys, const result<reply>& answer) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->is_error()) {
    return tl::unexpected(
        to_error(*answer, "list", topology_->where(), {"~holdfast:*", "&holdfast:*"}));
  }
  for (const reply& one : std::span(answer->elements).subspan(answer->elements.empty() ? 0 : 1)) {
    const auto& fields = one.elements;
    if (fields.size() < 5) return failure(errc::unavailable, "unexpected reply");
    const auto which = static_cast<std::size_t>(fields[0].integer - 1);
    if (which >= keys.size()) return failure(errc::unavailable, "unexpected reply");
    // Listed without holders or waiters: what is stored there cannot be read.
    const bool damaged = fields[1].integer < 0;
    const auto holders = damaged ? 0 : static_cast<std::size_t>(fields[1].integer);
    const auto waiters = static_cast<std::size_t>(fields[2].integer);
    const auto blocked = blocked_of(fields[4].integer);
    if (holders + waiters == 0 && !blocked && !damaged) continue;
    const auto resource = resource_of(parse_state(keys[which])->tail, fields[3].words());
    if (!resource || resource->space != what_.space) continue;
    if (!resource->name.starts_with(what_.name)) continue;
    list_.push_back({resource->name, holders, waiters, blocked});
  }
  if (list_.size() <= names_at_most) return {};
  return failure(errc::overloaded, "more than " + std::to_string(names_at_most) +
                                       " names are held or waited for: give a prefix");
}

void list_names(std::shared_ptr<topology> servers, std::shared_ptr<const scripts> with,
                std::shared_ptr<const spi::runtime> clock, spi::resource_id what,
                const net::patience& until,
                spi::completion<std::vector<spi::resource_summary>> done) {
  std::make_shared<listing>(std::move(servers), std::move(with), std::move(clock), std::move(what),
                            until, std::move(done))
      ->start();
}

}  // namespace holdfast::redis
