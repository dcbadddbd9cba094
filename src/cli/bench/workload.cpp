#include "cli/bench/workload.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <latch>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

// How long after the end those who still wait may take: those before it give back and leave.
constexpr duration drain = std::chrono::seconds(60);

using random_source = std::minstd_rand;

// One lock, and how it is taken.
using way_in = std::function<result<lease>(random_source&, const acquire_options&)>;

way_in make_way(const bench_arguments& how, const client& client, const std::string& name) {
  // An outage is not sat out: there would be no figures anyway.
  const lock_options plain{.fair = how.mode == lock_kind::fair, .retry = retry_policy::never()};
  if (how.mode == lock_kind::semaphore) {
    const auto all = std::make_shared<semaphore>(
        client, name, semaphore_options{.max = how.permits, .lock = plain});
    return [all](random_source&, const acquire_options& wait) { return all->acquire(wait); };
  }
  if (how.mode == lock_kind::rw) {
    const auto door = std::make_shared<shared_mutex>(client, name, plain);
    return [door, reads = how.reads](random_source& random, const acquire_options& wait) {
      const bool reading = random() % 100 < reads;
      return reading ? door->acquire_shared(wait) : door->acquire(wait);
    };
  }
  const auto door = std::make_shared<mutex>(client, name, plain);
  return [door](random_source&, const acquire_options& wait) { return door->acquire(wait); };
}

// Which lock comes next.
class chooser {
 public:
  chooser(const bench_arguments& how, std::size_t thread) : own_(thread), choice_(how.locks) {
    if (choice_ != lock_choice::zipf) return;
    std::vector<double> weights(locks_of(how));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = 1.0 / static_cast<double>(i + 1);
    zipf_ = std::discrete_distribution<std::size_t>(weights.begin(), weights.end());
  }
  std::size_t next(random_source& random) {
    if (choice_ == lock_choice::same) return 0;
    return choice_ == lock_choice::own ? own_ : zipf_(random);
  }

 private:
  std::size_t own_;
  lock_choice choice_;
  std::discrete_distribution<std::size_t> zipf_;
};

// On a cache line of its own: each thread writes in one all the time.
struct alignas(64) tally {
  std::uint64_t grants = 0;
  histogram acquire;
  histogram release;
  histogram hand_off;
};

}  // namespace

struct workload::inside {
  inside(const worker_plan& plan_of, const client& client, const relay& times)
      : plan(plan_of), track(times), tallies(plan.how.threads) {
    ways.resize(locks_of(plan.how));
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const bool used = plan.how.locks != lock_choice::own ||
                        (i >= plan.first && i < plan.first + plan.how.threads);
      if (used) ways[i] = make_way(plan.how, client, plan.name + "/" + std::to_string(i));
    }
    threads.reserve(plan.how.threads);
    for (std::uint32_t i = 0; i < plan.how.threads; ++i)
      threads.emplace_back([this, i] { run(i); });
  }
  ~inside() {
    if (!started) open.count_down();  // they find a time that is over
  }

  void run(std::uint32_t number) {
    open.wait();
    std::this_thread::sleep_for(start - clock::now());
    random_source random(plan.first + number + 1);
    chooser choose(plan.how, plan.first + number);
    while (clock::now() < end && !failed.load(std::memory_order_relaxed)) {
      one_round(choose.next(random), random, tallies[number]);
    }
  }

  void one_round(std::size_t lock, random_source& random, tally& into) {
    const time_point asked = clock::now();
    auto held = ways[lock](random, {.wait = end - asked + drain});
    const time_point granted = clock::now();
    if (!held) return complain(held.error());
    const time_point before = track.last_given_back(lock);
    if (plan.how.hold > duration{0}) std::this_thread::sleep_for(plan.how.hold);
    const time_point leaving = clock::now();
    track.given_back(lock, leaving);
    if (auto left = held->release(); !left) return complain(left.error());
    const time_point done = clock::now();
    // By the end for the rate, by the beginning for the rest: a long wait that was cut off would be
    // left out, and the long ones with it.
    if (done >= counted_from && done <= end) ++into.grants;
    if (asked < counted_from) return;
    into.acquire.record(granted - asked);
    into.release.record(done - leaving);
    if (plan.how.hands_over() && before > asked) into.hand_off.record(granted - before);
  }

  // Nothing of a run in which something went wrong counts.
  void complain(const error& what) {
    failed = true;
    const std::lock_guard guard(mutex);
    if (trouble.empty()) trouble = what.message();
  }

  const worker_plan plan;
  const relay& track;
  std::vector<way_in> ways;
  std::vector<tally> tallies;  // by thread; read when all have ended
  std::latch open{1};
  bool started = false;
  time_point start{}, counted_from{}, end{};  // written before `open`
  std::atomic<bool> failed{false};
  mutable std::mutex mutex;
  std::string trouble;  // guarded by mutex
  std::vector<std::jthread> threads;
};

workload::workload(const worker_plan& plan, const client& client, const relay& relay)
    : inside_(std::make_unique<inside>(plan, client, relay)) {}

workload::~workload() = default;

void workload::start(time_point when) {
  inside_->start = when;
  inside_->end = when + inside_->plan.how.length;
  inside_->counted_from = when + warm_up(inside_->plan.how.length);
  inside_->started = true;
  inside_->open.count_down();
}

std::optional<worker_result> workload::take() {
  inside_->threads.clear();
  if (failed()) return std::nullopt;
  worker_result made;
  for (const tally& one : inside_->tallies) {
    made.grants.push_back(one.grants);
    made.acquire.merge(one.acquire);
    made.release.merge(one.release);
    made.hand_off.merge(one.hand_off);
  }
  return made;
}

bool workload::failed() const noexcept { return inside_->failed; }

std::string workload::trouble() const {
  const std::lock_guard guard(inside_->mutex);
  return inside_->trouble;
}

}  // namespace holdfast::cli
