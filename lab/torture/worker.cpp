#include "torture/worker.hpp"

#include "torture/labourer.hpp"

#include <signal.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <thread>

namespace holdfast::torture {

namespace {

constexpr int refused = 122;
constexpr std::chrono::milliseconds step{10};

// The server may be down at this moment. None: it is over, or it will never do.
std::optional<client> connect(const errand& sent, const board& common, int& code) {
  while (!common.over()) {
    client_options options;
    options.space = sent.space;
    options.password = sent.password;
    auto opened = client::open(sent.url, std::move(options));
    if (opened) return std::move(*opened);
    if (opened.error() == errc::invalid || opened.error() == errc::unsupported) {
      std::fprintf(stderr, "%s\n", opened.error().message().c_str());
      code = refused;
      return std::nullopt;
    }
    std::this_thread::sleep_for(step);
  }
  return std::nullopt;
}

void labour(workplace& place, const board& common, std::stop_source& stop) {
  const plan& wanted = place.sent.wanted;
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < wanted.threads; ++i) {
    threads.emplace_back([&place, i] { labourer(place, i).work(); });
  }
  for (const workload each : wanted.workloads) {
    if (each != workload::latch) continue;
    threads.emplace_back([&place, i = wanted.threads] { labourer(place, i).count_latches(); });
  }
  while (!common.over()) std::this_thread::sleep_for(step);
  stop.request_stop();
}

}  // namespace

int work(const std::filesystem::path& folder, std::int32_t process) {
  // A full disk is an answer, not an end.
  ::signal(SIGXFSZ, SIG_IGN);
  try {
    const errand sent = load_errand(folder, process);
    board common(board_file(folder));
    recorder history(record_file(folder, process));
    int code = 0;
    std::optional<client> opened = connect(sent, common, code);
    if (!opened) return code;
    const auto resources = resources_of(sent.wanted);
    std::stop_source stop;
    std::atomic<std::int32_t> next_hold{1};
    workplace place{sent, resources, *opened, history, common, stop.get_token(), next_hold};
    labour(place, common, stop);
    opened->close();
    return 0;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
  }
}

}  // namespace holdfast::torture
