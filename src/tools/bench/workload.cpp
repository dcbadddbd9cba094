#include "tools/bench/workload.hpp"

#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::size_t zipf_locks = 1'000;
// How much longer the remaining waiters may take after the end: each releases what it gets and
// leaves.
constexpr duration drain = std::chrono::seconds(60);

using random_source = std::minstd_rand;

// One lock, and how it is taken.
using way_in = std::function<result<lease>(random_source&, const acquire_options&)>;

way_in make_way(const bench_arguments& how, const client& client, const std::string& name) {
  // An outage is not waited out: there would be no figures anyway.
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

// On a cache line of its own: each thread writes to one all the time.
struct alignas(64) tally {
  std::uint64_t grants = 0;
  histogram acquire;
  histogram release;
  histogram hand_off;
};

// The threads. Used by the main one: start(), then take() once. Before destroying one that is not
// over, close the client.
class workload {
 public:
  workload(const bench_plan& plan, const bench_board& board, const client& client,
           std::uint32_t process)
      : how_(plan.how),
        board_(board),
        first_(process * how_.threads),
        ways_(locks_of(how_)),
        tallies_(how_.threads),
        running_(how_.threads) {
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      const bool used =
          how_.locks != lock_choice::own || (i >= first_ && i < first_ + how_.threads);
      if (used) ways_[i] = make_way(how_, client, plan.name + "/" + std::to_string(i));
    }
    threads_.reserve(how_.threads);
    for (std::uint32_t i = 0; i < how_.threads; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  workload(const workload&) = delete;
  workload& operator=(const workload&) = delete;
  ~workload() {
    if (start_ == time_point{}) open_.count_down();  // they find that their time is over
  }

  void start(time_point when) {
    start_ = when;
    end_ = when + how_.length;
    counted_from_ = when + warm_up(how_.length);
    open_.count_down();
  }
  [[nodiscard]] bool running() const noexcept { return running_ > 0; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  // Waits for all threads.
  outcome<void> take(worker_result& into) {
    threads_.clear();
    if (failed()) {
      return tl::unexpected(
          complaint{exit_code::engine, "the measurement failed (" + trouble_ + ")"});
    }
    for (std::uint32_t i = 0; i < how_.threads; ++i) {
      board_.grants[first_ + i] = tallies_[i].grants;
      into.acquire.merge(tallies_[i].acquire);
      into.release.merge(tallies_[i].release);
      into.hand_off.merge(tallies_[i].hand_off);
    }
    return {};
  }

 private:
  void run(std::uint32_t number) {
    open_.wait();
    std::this_thread::sleep_for(start_ - clock::now());
    random_source random(first_ + number + 1);
    chooser choose(how_, first_ + number);
    while (clock::now() < end_ && !failed_.load(std::memory_order_relaxed)) {
      one_round(choose.next(random), random, tallies_[number]);
    }
    --running_;
  }

  void one_round(std::size_t lock, random_source& random, tally& into) {
    const time_point asked = clock::now();
    auto held = ways_[lock](random, {.wait = end_ - asked + drain});
    const time_point granted = clock::now();
    if (!held) return complain(held.error());
    bench_board::moment& given_back = board_.given_back[lock];
    const time_point before(duration(given_back.load(std::memory_order_acquire)));
    if (how_.hold > duration{0}) std::this_thread::sleep_for(how_.hold);
    const time_point leaving = clock::now();
    given_back.store(leaving.time_since_epoch().count(), std::memory_order_release);
    if (auto left = held->release(); !left) return complain(left.error());
    const time_point done = clock::now();
    // Counted by its end for the rate, by its beginning for the rest: otherwise a long wait that
    // was cut off would be left out, and so the long ones would be missing.
    if (done >= counted_from_ && done <= end_) ++into.grants;
    if (asked < counted_from_) return;
    into.acquire.record(granted - asked);
    into.release.record(done - leaving);
    if (how_.hands_over() && before > asked) into.hand_off.record(granted - before);
  }

  // If anything went wrong, nothing of the run counts.
  void complain(const error& what) {
    const std::lock_guard guard(mutex_);
    if (trouble_.empty()) trouble_ = what.message();
    failed_ = true;
  }

  const bench_arguments& how_;
  const bench_board& board_;
  const std::uint32_t first_;  // the number of its first thread
  std::vector<way_in> ways_;
  std::vector<tally> tallies_;  // by thread; read when all have ended
  std::latch open_{1};
  time_point start_{}, counted_from_{}, end_{};  // written before `open_`
  std::atomic<std::uint32_t> running_;
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::string trouble_;  // guarded by mutex_; read when all have ended
  std::vector<std::jthread> threads_;
};

rusage use_of_process() noexcept {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  return use;
}

duration processor_of(const rusage& use) noexcept {
  const auto span = [](const timeval& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::microseconds(time.tv_usec);
  };
  return span(use.ru_utime) + span(use.ru_stime);
}

// False: something failed, or the command has given up.
bool wait_until(time_point when, const workload& work, const worker_processes& all) {
  constexpr duration step = std::chrono::milliseconds(100);
  for (time_point now = clock::now(); now < when; now = clock::now()) {
    if (work.failed() || all.given_up(std::min(when - now, step))) return false;
  }
  return true;
}

// Between the first and the last counted moment.
bool measure_cost(const bench_arguments& how, time_point start, const workload& work,
                  const worker_processes& all, worker_result& into) {
  if (!wait_until(start + warm_up(how.length), work, all)) return false;
  const auto traffic_before = count_traffic();
  const rusage use_before = use_of_process();
  if (!wait_until(start + how.length, work, all)) return false;
  const rusage use_after = use_of_process();
  constexpr std::uint64_t kilobyte = 1024;
  into.traffic = difference(traffic_before, count_traffic());
  into.processor = processor_of(use_after) - processor_of(use_before);
  into.memory = static_cast<std::uint64_t>(use_after.ru_maxrss) * kilobyte;
  return true;
}

}  // namespace

duration warm_up(duration length) noexcept {
  constexpr duration most = std::chrono::milliseconds(500);
  return std::min(length / 5, most);
}

std::size_t locks_of(const bench_arguments& how) noexcept {
  switch (how.locks) {
    case lock_choice::same:
      return 1;
    case lock_choice::own:
      return how.all_threads();
    case lock_choice::zipf:
      return zipf_locks;
  }
  return 1;
}

outcome<void> measure(const bench_plan& plan, const bench_board& board, worker_processes& all,
                      std::uint32_t process) {
  // The command gets them too, and gives up.
  for (const int number : {SIGINT, SIGHUP, SIGQUIT}) std::signal(number, SIG_IGN);
  auto client = connect(plan.to, plan.with, hand_over::within_process);
  if (!client) return tl::unexpected(std::move(client.error()));
  worker_result& result = board.results[process];
  outcome<void> done;
  {
    workload work(plan, board, *client, process);
    if (!all.wait_for_start()) return {};
    const time_point start(duration(board.start[0].load()));
    work.start(start);
    bool fine = measure_cost(plan.how, start, work, all, result);
    while (fine && work.running()) fine = !all.given_up(std::chrono::milliseconds(10));
    if (!fine) client->close();  // so that nobody goes on waiting
    done = work.take(result);
  }
  client->close();
  return done;
}

}  // namespace holdfast::cli
