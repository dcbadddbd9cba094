// The etcd store against bare puts by the same client on the same server: a pair against two puts, and how
// soon a lock passes from client to client in units of one. Starts a server of its own.
#include "net/connector.hpp"
#include "sql_rounds.hpp"
#include "stores/etcd/channel.hpp"
#include "stores/etcd/messages.hpp"
#include "support/etcd_server.hpp"

#include <holdfast/spi/reactor.hpp>

namespace {

using namespace std::chrono_literals;
namespace etcd = holdfast::etcd;

holdfast::test::etcd_server& server() {
  static const auto one = holdfast::test::start_etcd();
  return *one;
}

std::string url() { return "etcd://" + server().host() + holdfast::test::fresh_etcd_prefix(); }

class bare_put {
 public:
  bare_put() {
    etcd::server_options options;
    options.servers.push_back({"127.0.0.1", server().port(), {}});
    way_ = etcd::channel::make(net_, std::make_shared<const etcd::server_options>(options));
  }
  ~bare_put() { way_->close(); }
  bare_put(const bare_put&) = delete;
  bare_put& operator=(const bare_put&) = delete;

  void take() { put(); }
  void give() { put(); }

 private:
  struct answered {
    std::atomic<bool> done{false};
    bool well = false;
  };

  static etcd::flow send(std::shared_ptr<etcd::channel> way,
                         std::shared_ptr<holdfast::spi::reactor> reactor, answered* into) {
    std::vector<etcd::call> calls;
    calls.push_back({etcd::method::put, etcd::put_body("bare", std::string(60, 'x'), 0)});
    const etcd::replies answers =
        co_await etcd::asking(way, std::move(calls), holdfast::clock::now() + 10s);
    into->well = answers.front() && answers.front()->ok();
    into->done.store(true);
    reactor->wake(into->done);
  }

  void put() {
    answered one;
    send(way_, reactor_, &one);
    reactor_->wait(one.done);
    if (!one.well) throw std::runtime_error("put");
  }

  const std::shared_ptr<holdfast::spi::reactor> reactor_ = holdfast::spi::make_reactor();
  const holdfast::net::network net_ = holdfast::net::make_network(reactor_);
  std::shared_ptr<etcd::channel> way_;
};

void pair(benchmark::State& state) { bench::pair(state, url(), bare_put()); }
BENCHMARK(pair)->Iterations(40)->Unit(benchmark::kMillisecond);

void hand_over(benchmark::State& state) { bench::hand_over(state, url(), bare_put()); }
BENCHMARK(hand_over)->Iterations(1000)->Unit(benchmark::kMicrosecond);

}  // namespace
