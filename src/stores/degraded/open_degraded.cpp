#include "stores/degraded/open_degraded.hpp"

#include "net/time_option.hpp"
#include "stores/degraded/fallback_store.hpp"

#include <charconv>
#include <string>
#include <utility>

namespace holdfast::degraded {

namespace {

constexpr std::uint32_t most_failures = 1'000;

result<std::uint32_t> failures_in(const std::string& text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end || number == 0 || number > most_failures) {
    return failure(errc::invalid, "URL: breaker is a number from 1 to 1000");
  }
  return number;
}

}  // namespace

result<options> take_options(spi::url& url) {
  options taken;
  const auto pause = net::time_option(url, "breaker_pause", breaker_settings{}.pause);
  if (!pause) return tl::unexpected(pause.error());
  if (const auto found = url.options.find("degrade"); found != url.options.end()) {
    if (found->second != "local" && found->second != "no") {
      return failure(errc::invalid, "URL: degrade is local or no");
    }
    taken.fallback = found->second == "local";
    if (taken.fallback) taken.breaker.emplace();
  }
  if (const auto found = url.options.find("breaker"); found != url.options.end()) {
    const auto failures = failures_in(found->second);
    if (!failures) return tl::unexpected(failures.error());
    taken.breaker.emplace().failures = *failures;
  }
  if (taken.breaker) {
    taken.breaker->pause = *pause;
  } else if (url.options.contains("breaker_pause")) {
    return failure(errc::invalid, "URL: breaker_pause without breaker or degrade");
  }
  for (const char* own : {"breaker", "breaker_pause", "degrade"}) url.options.erase(own);
  return taken;
}

std::shared_ptr<spi::store> wrap(const options& options, std::shared_ptr<spi::store> engine,
                                 std::shared_ptr<spi::store> local,
                                 const std::shared_ptr<spi::reactor>& runtime) {
  if (!options.breaker) return engine;
  auto watched = std::make_shared<breaker_store>(runtime, std::move(engine), *options.breaker);
  if (!options.fallback) return watched;
  return std::make_shared<fallback_store>(runtime, std::move(watched), std::move(local));
}

}  // namespace holdfast::degraded
