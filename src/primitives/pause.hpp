// A pause of the calling thread, which drives the runtime meanwhile if nobody else does.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <memory>
#include <stop_token>

namespace holdfast::detail {

// Ends early when stopped. Not to be called on the runtime's own threads.
inline void pause_until(const std::shared_ptr<spi::runtime>& runtime, time_point when,
                        const std::stop_token& token = {}) {
  // Shared: a timer that is cancelled as it fires still runs.
  const auto over = std::make_shared<std::atomic<bool>>(false);
  const auto end = [runtime, over] {
    over->store(true);
    runtime->wake(*over);
  };
  const std::stop_callback stopped(token, end);
  const auto timer = runtime->at(when, end);
  runtime->wait(*over);
  runtime->cancel(timer);
}

}  // namespace holdfast::detail
