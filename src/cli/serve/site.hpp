// What is behind the addresses of `holdfast serve`.
//
//   GET  /                          the live page
//   GET  /healthz                   whether this process serves
//   GET  /metrics                   for Prometheus
//   GET  /api/engines               the engines: up or not, doctor's findings, counts, the charts
//   GET  /api/locks                 names that are held or waited for; ?name=N... tells all about some
//   GET  /api/locks/NAME            its holders and waiters, and its recent past
//   GET  /api/events                server-sent events
//   POST /api/locks/NAME/revoke     where it is allowed
#pragma once

#include "cli/http/server.hpp"
#include "cli/serve/answers.hpp"
#include "cli/serve/engine_view.hpp"
#include "cli/serve/event_log.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::cli::serve {

// Thread-safe; the engines and the log outlive it.
class site {
 public:
  site(access_rules rules, bool may_revoke, std::vector<std::unique_ptr<engine_view>>& engines,
       event_log& log);

  http::response answer(const http::request& request);

 private:
  // The address taken apart: values are decoded.
  struct question {
    std::string path;  // as it was sent
    std::vector<std::string> names;
    std::string engine;
    std::string prefix;
    std::string claim;
    bool malformed = false;
  };
  static question understood(std::string_view target);

  http::response route(const http::request& request);
  http::response engines_document();
  http::response names_document(const http::request& request, const question& asked);
  http::response details_document(const question& asked);
  http::response lock_document(const question& asked, std::string_view encoded);
  http::response revoke(const question& asked, std::string_view encoded);
  http::response events(const http::request& request, const question& asked);
  std::string statistics(std::size_t seconds) const;
  http::response metrics();

  // A refusal: there is no such engine, or several and none was named.
  tl::expected<engine_view*, http::response> chosen(const question& asked) const;
  const access_rules rules_;
  const bool may_revoke_;
  std::vector<std::unique_ptr<engine_view>>& engines_;
  event_log& log_;
  std::shared_ptr<std::atomic<std::size_t>> streams_ =
      std::make_shared<std::atomic<std::size_t>>(0);
  std::atomic<std::uint64_t> missed_{0};

  std::mutex mutex_;
  std::map<int, std::uint64_t> answered_with_;  // guarded by mutex_
};

}  // namespace holdfast::cli::serve
