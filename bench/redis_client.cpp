// What does the Redis client layer cost a lone caller, and what does sharing one connection give
// many threads? PING over loopback, against bare hiredis with a connection per thread. Compare
// within one run, interleaved: bench_redis_client --benchmark_enable_random_interleaving
// --benchmark_repetitions=15
#include "stores/redis/client/connection.hpp"
#include "support/redis_server.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/reactor.hpp>

#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace {

using namespace std::chrono_literals;
using holdfast::redis::command;
using holdfast::redis::connection;
using holdfast::redis::reply;

// Started at the first use, stopped at the end of the program.
holdfast::test::redis_server& server() {
  static holdfast::test::redis_server started;
  return started;
}

struct free_context {
  void operator()(redisContext* context) const noexcept { ::redisFree(context); }
};
using context_ptr = std::unique_ptr<redisContext, free_context>;

context_ptr connect_bare() {
  context_ptr context(::redisConnect("127.0.0.1", server().port()));
  const int on = 1;
  ::setsockopt(context->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return context;
}

void bare(benchmark::State& state) {
  const context_ptr context = connect_bare();
  for ([[maybe_unused]] auto unused : state) {
    ::freeReplyObject(::redisCommand(context.get(), "PING"));
  }
  state.SetItemsProcessed(state.iterations());
}

struct client {
  std::shared_ptr<holdfast::spi::reactor> reactor = holdfast::spi::make_reactor();
  std::shared_ptr<connection> line;

  client() {
    holdfast::redis::server_options options;
    options.where = {"127.0.0.1", server().port(), ""};
    line = connection::make(holdfast::net::make_network(reactor), std::move(options));
  }
  ~client() { line->close(); }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  // Drives the reactor until the answer has arrived.
  void ping() const {
    std::atomic<bool> done{false};
    const command what{"PING"};
    line->send(what, holdfast::clock::now() + 5s, [&](holdfast::result<reply> answer) {
      if (!answer) std::abort();
      done.store(true, std::memory_order_release);
      reactor->wake(done);
    });
    reactor->wait(done);
  }
};

void driven(benchmark::State& state) {
  static std::unique_ptr<client> shared;
  if (state.thread_index() == 0) {
    shared = std::make_unique<client>();
    shared->ping();
  }
  for ([[maybe_unused]] auto unused : state) shared->ping();
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) shared.reset();
}

BENCHMARK(bare)->Threads(1)->Threads(64)->UseRealTime();
BENCHMARK(driven)->Threads(1)->Threads(64)->UseRealTime();

}  // namespace
