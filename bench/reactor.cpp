// What does driving the reactor cost a lone caller? A ping-pong with an echo thread over a socket
// pair: bare blocking calls, the reactor driven by the caller, and the reactor's own thread with a
// hop to the caller. Compare within one run, interleaved:
// bench_reactor --benchmark_enable_random_interleaving --benchmark_repetitions=15
#include <holdfast/spi/reactor.hpp>

#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace std::chrono_literals;

constexpr std::size_t message_size = 64;
using message = std::array<char, message_size>;

// The other end echoes every message, on a thread of its own.
class echo {
 public:
  echo() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()) != 0) std::abort();
    thread_ = std::jthread([other = ends_[1]] {
      message text{};
      while (::recv(other, text.data(), text.size(), 0) > 0) {
        if (::send(other, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
      }
    });
  }
  ~echo() {
    ::shutdown(ends_[0], SHUT_RDWR);
    thread_.join();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  echo(const echo&) = delete;
  echo& operator=(const echo&) = delete;

  [[nodiscard]] int socket() const noexcept { return ends_[0]; }
  void send() const {
    const message text{};
    if (::send(socket(), text.data(), text.size(), MSG_NOSIGNAL) < 0) std::abort();
  }
  void receive() const {
    message text{};
    if (::recv(socket(), text.data(), text.size(), 0) < 0) std::abort();
  }

 private:
  std::array<int, 2> ends_{};
  std::jthread thread_;
};

// The time of a round trip alone, after a pause that is not counted.
template <class RoundTrip>
void measure(benchmark::State& state, RoundTrip&& round_trip) {
  const auto pause = std::chrono::milliseconds(state.range(0));
  for ([[maybe_unused]] auto unused : state) {
    if (pause > 0ms) std::this_thread::sleep_for(pause);
    const auto start = std::chrono::steady_clock::now();
    round_trip();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

void bare(benchmark::State& state) {
  const echo peer;
  measure(state, [&] {
    peer.send();
    peer.receive();
  });
}

void driven(benchmark::State& state) {
  const echo peer;
  const auto reactor = holdfast::spi::make_reactor();
  std::atomic<bool> done{false};
  const auto id = reactor->watch(peer.socket(), true, false, [&](holdfast::spi::readiness) {
    peer.receive();
    done.store(true, std::memory_order_release);
    reactor->wake(done);
  });
  measure(state, [&] {
    done.store(false, std::memory_order_relaxed);
    peer.send();
    reactor->wait(done);
  });
  reactor->unwatch(id);
}

void with_hop(benchmark::State& state) {
  const echo peer;
  const auto reactor = holdfast::spi::make_reactor();
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  const auto id = reactor->watch(peer.socket(), true, false, [&](holdfast::spi::readiness) {
    peer.receive();
    {
      const std::scoped_lock lock(mutex);
      done = true;
    }
    changed.notify_one();
  });
  measure(state, [&] {
    std::unique_lock lock(mutex);
    done = false;
    peer.send();
    changed.wait(lock, [&] { return done; });
  });
  reactor->unwatch(id);
}

// Back to back, and after a pause in which the engine's thread has become the leader. The latter
// with a fixed number: only round trips count as time, and the pauses would take minutes.
void back_to_back(benchmark::internal::Benchmark* bench) {
  bench->Arg(0)->ArgName("pause_ms")->UseManualTime();
}
void after_a_pause(benchmark::internal::Benchmark* bench) {
  bench->Arg(5)->ArgName("pause_ms")->UseManualTime()->Iterations(100);
}

BENCHMARK(bare)->Apply(back_to_back);
BENCHMARK(driven)->Apply(back_to_back);
BENCHMARK(with_hop)->Apply(back_to_back);
BENCHMARK(bare)->Apply(after_a_pause);
BENCHMARK(driven)->Apply(after_a_pause);
BENCHMARK(with_hop)->Apply(after_a_pause);

}  // namespace
