// What the Redis store costs compared with the bare driver and with the publish-and-retry protocol
// that other libraries use, on loopback, everything in one run and interleaved. Only ratios matter.
#include "bare_redis.hpp"
#include "bare_redis_pair.hpp"
#include "retry_redis_pair.hpp"
#include "support/redis_server.hpp"

#include <holdfast/holdfast.hpp>

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast;

constexpr int rounds = 7;
constexpr auto one_round = 400ms;

double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

double microseconds_of(const std::function<void()>& work, int times) {
  const time_point start = clock::now();
  for (int i = 0; i < times; ++i) work();
  return static_cast<double>((clock::now() - start).count()) / 1e3 / times;
}

double server_cpu(const test::redis_server& server) {  // microseconds
  const std::string text = server.cli({"INFO", "cpu"});
  const auto field = [&](const std::string& name) {
    return std::stod(text.substr(text.find(name + ":") + name.size() + 1));
  };
  return (field("used_cpu_user") + field("used_cpu_sys")) * 1e6;
}

client opened(const test::redis_server& server) {
  return *client::open("redis://127.0.0.1:" + std::to_string(server.port()));
}

void one_thread(const test::redis_server& server) {
  const client mine = opened(server);
  mutex lock(mine, "one", {.ttl = 30s});
  const bare_pair bare(server.port(), "bare");
  const auto pair = [&] {
    auto lease = lock.acquire();
    if (!lease || !lease->release()) std::abort();
  };
  const auto scope = [&] {
    if (!lock.acquire()) std::abort();
  };
  constexpr int times = 3'000;
  microseconds_of(pair, times);
  std::vector<double> ours;
  std::vector<double> scoped;
  std::vector<double> theirs;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(microseconds_of(pair, times));
    scoped.push_back(microseconds_of(scope, times));
    theirs.push_back(microseconds_of([&] { bare.run(); }, times));
  }
  const double base = median(theirs);
  std::printf("1 thread, acquire + release: %.1f us; bare, same scripts: %.1f us; ratio %.2f\n",
              median(ours), base, median(ours) / base);
  std::printf("  given back by the lease's end, which waits for no answer: %.1f us; ratio %.2f\n",
              median(scoped), median(scoped) / base);
}

// What many workers at once did, each calling its own work.
struct load_round {
  double rate;    // a second
  double server;  // microseconds of processor time for each
  double client;
};

load_round load_of(const test::redis_server& server, int workers,
                   const std::function<std::function<void()>(int)>& make) {
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<long> done{0};
  std::atomic<int> ready{0};
  std::vector<std::jthread> all;
  for (int i = 0; i < workers; ++i) {
    all.emplace_back([&, i] {
      const auto work = make(i);
      ++ready;
      while (!go) std::this_thread::yield();
      long mine = 0;
      for (; !stop; ++mine) work();
      done += mine;
    });
  }
  while (ready < workers) std::this_thread::yield();
  const double used = server_cpu(server);
  const std::clock_t ours = std::clock();
  const time_point start = clock::now();
  go = true;
  std::this_thread::sleep_for(one_round);
  stop = true;
  const double seconds = std::chrono::duration<double>(clock::now() - start).count();
  all.clear();
  const auto count = static_cast<double>(done);
  return {count / seconds, (server_cpu(server) - used) / count,
          static_cast<double>(std::clock() - ours) * (1e6 / CLOCKS_PER_SEC) / count};
}

// The middle of the rounds, each figure by itself.
load_round median(const std::vector<load_round>& all) {
  const auto middle = [&](double load_round::*which) {
    std::vector<double> values;
    for (const load_round& each : all) values.push_back(each.*which);
    return median(std::move(values));
  };
  return {middle(&load_round::rate), middle(&load_round::server), middle(&load_round::client)};
}

// Ours against the other's, and where the time went.
void print_loads(const char* what, const load_round& ours, const char* name,
                 const load_round& other) {
  std::printf(
      "%s: %.0f a second; %s: %.0f; ratio %.2f\n"
      "  processor time for each: server %.1f us and %.1f us, client %.1f us and %.1f us\n",
      what, ours.rate, name, other.rate, ours.rate / other.rate, ours.server, other.server,
      ours.client, other.client);
}

void many_threads(const test::redis_server& server) {
  constexpr int threads = 64;
  const client mine = opened(server);
  std::vector<load_round> ours;
  std::vector<load_round> scoped;
  std::vector<load_round> theirs;
  const auto lock_of = [&](int which) {
    return std::make_shared<mutex>(mine, "own/" + std::to_string(which));
  };
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(load_of(server, threads, [&](int which) {
      return [lock = lock_of(which)] {
        auto lease = lock->acquire();
        if (!lease || !lease->release()) std::abort();
      };
    }));
    scoped.push_back(load_of(server, threads, [&](int which) {
      return [lock = lock_of(which)] {
        if (!lock->acquire()) std::abort();
      };
    }));
    theirs.push_back(load_of(server, threads, [&](int which) {
      auto pair = std::make_shared<bare_pair>(server.port(), "bare/" + std::to_string(which));
      return [pair] { pair->run(); };
    }));
  }
  print_loads("64 threads, own locks, pairs", median(ours), "bare, a connection each",
              median(theirs));
  print_loads("64 threads, given back by the lease's end, pairs", median(scoped),
              "bare, a connection each", median(theirs));
}

void hand_off(const test::redis_server& server) {
  const client a = opened(server);
  const client b = opened(server);
  const bare_redis sender(server.port());
  const bare_redis receiver(server.port());
  receiver.call(std::vector<std::string>{"SUBSCRIBE", "bare"});
  const std::string publish =
      bare_redis::formatted({"PUBLISH", "bare", "0123456789abcdef0123456789"});
  const std::string ping = bare_redis::formatted({"PING"});
  std::vector<double> ours;
  std::vector<double> bare;
  for (int i = 0; i < 400; ++i) {
    mutex first(a, "hand", {.ttl = 30s, .fair = true});
    mutex second(b, "hand", {.ttl = 30s, .fair = true});
    auto held = first.acquire();
    time_point got;
    std::jthread waiting([&] {
      const auto lease = second.acquire();
      got = clock::now();
    });
    while (a.inspect("hand")->waiters.empty()) std::this_thread::sleep_for(100us);
    const time_point start = clock::now();
    static_cast<void>(held->release());
    waiting.join();
    ours.push_back(static_cast<double>((got - start).count()) / 1e3);
    time_point heard;
    std::jthread listening([&] {
      receiver.take();
      heard = clock::now();
    });
    std::this_thread::sleep_for(200us);
    const time_point sent = clock::now();
    sender.call(publish);
    listening.join();
    const double trip = microseconds_of([&] { sender.call(ping); }, 1);
    bare.push_back(static_cast<double>((heard - sent).count()) / 1e3 + trip);
  }
  std::printf(
      "hand-off between two clients: %.0f us; bare publish to receive + a round trip: %.0f us; "
      "ratio %.2f\n",
      median(ours), median(bare), median(ours) / median(bare));
}

void server_time(const test::redis_server& server) {
  const bare_pair ours(server.port(), "cpu");
  const retry_pair theirs(server.port(), "cpu-retry", "me");
  constexpr int batches = 200;
  constexpr int pairs = 64;
  std::vector<double> mine;
  std::vector<double> other;
  for (int i = 0; i < rounds; ++i) {
    double start = server_cpu(server);
    for (int n = 0; n < batches; ++n) ours.batch(pairs);
    mine.push_back((server_cpu(server) - start) / (batches * pairs));
    start = server_cpu(server);
    for (int n = 0; n < batches; ++n) theirs.batch(pairs);
    other.push_back((server_cpu(server) - start) / (batches * pairs));
  }
  std::printf(
      "server's processor time per pair, in batches: %.1f us; publish-and-retry scripts: %.1f us; "
      "ratio %.2f\n",
      median(mine), median(other), median(mine) / median(other));
}

// One lock passed around among claims that queue again as soon as they have released it, in
// batches.
void hand_over_time(const test::redis_server& server, int claims) {
  const bare_redis line(server.port());
  const bare_redis listener(server.port());
  const std::string process = "0123456789abcdef";
  const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
  const auto place = redis::place_of({"", "round"});
  listener.call(
      std::vector<std::string>{"SUBSCRIBE", redis::process_channel(place.partition, process)});
  load_functions(line);
  std::vector<std::string> round;
  for (int i = 0; i < claims; ++i) {
    spi::claim claim;
    claim.id.bytes.fill(
        static_cast<std::uint8_t>(i + 1));  // an id of zeros would match anywhere in a state
    claim.ttl = 30s;
    claim.fair = true;
    claim.payload = "host:1234:bench";
    const std::string bytes =
        redis::claim_bytes(claim, {process, 2s}, redis::queueing::allowed, std::nullopt);
    round.push_back(call_of(all->leave, place, redis::leaving_bytes(claim, {process, 2s})));
    round.push_back(call_of(all->attempt, place, bytes));
    line.call(round.back());
  }
  constexpr int batches = 200;
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    const double start = server_cpu(server);
    for (int n = 0; n < batches; ++n) {
      for (const std::string& each : round) line.post(each);
      for (std::size_t k = 0; k < round.size(); ++k) line.take();
    }
    times.push_back((server_cpu(server) - start) / (batches * claims));
    // Each release notified the next waiter. Holds are too short to be told that somebody waits.
    for (int n = 0; n < batches * claims; ++n) listener.take();
  }
  std::printf("server's processor time per hand-over, %d claims on one lock, in batches: %.1f us\n",
              claims, median(times));
  line.call({"DEL", place.state});
}

void contended(const test::redis_server& server, int clients) {
  std::vector<load_round> ours;
  std::vector<load_round> scoped;
  std::vector<load_round> theirs;
  const auto lock_of = [](const client& mine) {
    return std::make_shared<mutex>(mine, "contended", lock_options{.ttl = 30s});
  };
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(load_of(server, clients, [&](int) {
      const client mine = opened(server);
      return [lock = lock_of(mine)] {
        auto lease = lock->acquire();
        if (!lease || !lease->release()) std::abort();
      };
    }));
    scoped.push_back(load_of(server, clients, [&](int) {
      const client mine = opened(server);
      return [lock = lock_of(mine)] {
        if (!lock->acquire()) std::abort();
      };
    }));
    theirs.push_back(load_of(server, clients, [&](int which) {
      auto pair = std::make_shared<retry_pair>(server.port(), "contended-retry",
                                               "client" + std::to_string(which));
      return [pair] {
        pair->lock();
        pair->unlock();
      };
    }));
  }
  const std::string what = std::to_string(clients) + " clients on one lock, ";
  print_loads((what + "grants").c_str(), median(ours), "publish and retry", median(theirs));
  print_loads((what + "given back by the lease's end, grants").c_str(), median(scoped),
              "publish and retry", median(theirs));
}

void waiters(const test::redis_server& server) {
  const bare_redis line(server.port());
  const auto all = redis::scripts::make(redis::channel_id::flavour::classic);
  load_functions(line);
  const auto place = redis::place_of({"", "line"});
  const auto ask = [&](std::uint16_t number) {
    spi::claim claim;
    claim.id.bytes[0] = static_cast<std::uint8_t>(number >> 8U);
    claim.id.bytes[1] = static_cast<std::uint8_t>(number);
    claim.ttl = 60s;
    return call_of(all->attempt, place,
                   redis::claim_bytes(claim, {"0123456789abcdef", 2s}, redis::queueing::allowed,
                                      std::nullopt));
  };
  const auto cost = [&] {
    const std::string again = ask(5);
    const double start = server_cpu(server);
    constexpr int times = 5'000;
    for (int i = 0; i < times; ++i) line.post(again);
    for (int i = 0; i < times; ++i) line.take();
    return (server_cpu(server) - start) / times;
  };
  for (std::uint16_t i = 0; i < 10; ++i) line.call(ask(i));
  cost();
  const double few = cost();
  for (std::uint16_t i = 10; i < 1'000; ++i) line.call(ask(i));
  const double many = cost();
  std::printf(
      "server's time for a re-check in line: %.1f us with 10 waiters, %.1f us with 1,000; ratio "
      "%.2f\n",
      few, many, many / few);
}

void renewals(const test::redis_server& server) {
  const client mine = opened(server);
  constexpr int locks = 10'000;
  std::vector<std::unique_ptr<mutex>> all;
  std::vector<lease> held;
  for (int i = 0; i < locks; ++i) {
    all.push_back(
        std::make_unique<mutex>(mine, "held/" + std::to_string(i), lock_options{.ttl = 30s}));
    held.push_back(*all.back()->acquire());
  }
  const double before = server_cpu(server);
  const std::clock_t used = std::clock();
  std::this_thread::sleep_for(20s);
  std::printf(
      "10,000 held locks, ttl 30 s: %.1f %% of a core in the server, %.1f %% in the client\n",
      (server_cpu(server) - before) / 20e6 * 100,
      static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC / 20 * 100);
}

// The server on one core, and all of this process on another: otherwise the scheduler's placement
// of the two matters more than what is measured.
void pin(const test::redis_server& server) {
  const std::string text = server.cli({"INFO", "server"});
  const std::string field = "process_id:";
  const pid_t theirs = std::stoi(text.substr(text.find(field) + field.size()));
  const auto bind = [](pid_t process, unsigned core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core, &only);
    if (::sched_setaffinity(process, sizeof only, &only) != 0) {
      std::perror("sched_setaffinity");
      std::exit(1);
    }
  };
  bind(theirs, 0);
  bind(0, 1);
}

}  // namespace
}  // namespace holdfast::bench

// bench_redis_store [--pin] [PART...]: all of them, or those named.
int main(int count, char** words) {
  using namespace holdfast::bench;
  const holdfast::test::redis_server server;
  const bool pinned = count > 1 && std::string(words[1]) == "--pin";
  if (pinned) pin(server);
  const int first = pinned ? 2 : 1;
  const auto part = [&](const std::string& name, const std::function<void()>& run) {
    const auto named = [&](const char* word) { return name == word; };
    if (count < first + 1 || std::any_of(words + first, words + count, named)) run();
  };
  part("one", [&] { one_thread(server); });
  part("many", [&] { many_threads(server); });
  part("hand-off", [&] { hand_off(server); });
  part("server", [&] { server_time(server); });
  part("hand-over", [&] { hand_over_time(server, 2); });
  part("hand-over", [&] { hand_over_time(server, 16); });
  part("two", [&] { contended(server, 2); });
  part("sixteen", [&] { contended(server, 16); });
  part("waiters", [&] { waiters(server); });
  part("renewals", [&] { renewals(server); });
}
