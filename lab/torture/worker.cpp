#include "torture/worker.hpp"

#include "stores/table.hpp"
#include "torture/worker_thread.hpp"

#include <signal.h>

#include <cstdio>
#include <exception>
#include <optional>

namespace holdfast::torture {

namespace {

constexpr int refused = 122;
constexpr std::chrono::milliseconds between_attempts{10};
constexpr std::chrono::milliseconds beat{100};
constexpr std::chrono::milliseconds stall{400};  // a beat that took this long: nothing here ran

struct connection {
  std::shared_ptr<witness_store> witness;
  holdfast::client client;
};

result<connection> open(const assignment& sent, recorder& history) {
  auto url = spi::parse_url(sent.url);
  if (!url) return tl::unexpected(url.error());
  if (!sent.password.empty()) url->password = spi::secret(sent.password);
  const auto runtime = spi::make_reactor();
  auto store = stores::open(*url, runtime);
  if (!store) return tl::unexpected(store.error());
  auto witness = std::make_shared<witness_store>(*std::move(store), sent.start(), history);
  client_options options;
  options.name_space = sent.space;
  auto opened = client::open(runtime, witness, std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  return connection{std::move(witness), *std::move(opened)};
}

// The server may be down at the moment. None: the run is over, or the engine refuses it
// permanently.
std::optional<connection> connect(const assignment& sent, const board& common, recorder& history,
                                  int& code) {
  while (!common.over()) {
    auto opened = open(sent, history);
    if (opened) return std::move(*opened);
    if (opened.error() == errc::invalid || opened.error() == errc::unsupported) {
      std::fprintf(stderr, "%s\n", opened.error().message().c_str());
      code = refused;
      return std::nullopt;
    }
    common.wait_over(between_attempts);
  }
  return std::nullopt;
}

// A busy machine stops a process as a signal does.
void record_stall(worker_context& context, time_point from, time_point to) {
  sim::record line;
  line.process = context.sent.process;
  line.number = 1;
  line.kind = sim::what::paused;
  line.at = from - context.sent.start();
  context.history.add(line);
  line.kind = sim::what::resumed;
  line.at = to - context.sent.start();
  context.history.add(line);
}

void run_workers(worker_context& context, const board& common, std::stop_source& stop) {
  const plan& wanted = context.sent.wanted;
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < wanted.threads; ++i) {
    threads.emplace_back([&context, i] { worker_thread(context, i).work(); });
  }
  for (const workload each : wanted.workloads) {
    if (each != workload::latch) continue;
    threads.emplace_back(
        [&context, i = wanted.threads] { worker_thread(context, i).count_latches(); });
  }
  for (time_point last = clock::now(); !common.wait_over(beat);) {
    const time_point now = clock::now();
    if (now - last > stall) record_stall(context, last, now);
    last = now;
  }
  stop.request_stop();
}

}  // namespace

int work(const std::filesystem::path& folder, std::int32_t process) {
  // A full disk is an error to report, not a reason to end.
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    const assignment sent = load_assignment(folder, process);
    board common(board_file(folder));
    recorder history(record_file(folder, process));
    int code = 0;
    std::optional<connection> opened = connect(sent, common, history, code);
    if (!opened) return code;
    const auto resources = resources_of(sent.wanted);
    std::stop_source stop;
    std::atomic<std::int32_t> next_hold{1};
    worker_context context{sent,    resources, opened->client,   *opened->witness,
                           history, common,    stop.get_token(), next_hold};
    run_workers(context, common, stop);
    opened->client.close();
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}

}  // namespace holdfast::torture
