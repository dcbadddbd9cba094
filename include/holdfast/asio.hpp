// Completion tokens for Asio, standalone or Boost's: whichever was included before this header, else
// whichever there is, standalone first.
//
//   auto lease = co_await holdfast::async_acquire(stock, {.wait = 1s}, asio::use_awaitable);
//
// The handler runs on its associated executor (without one: on the client's), which is kept at work
// meanwhile; its cancellation slot stops the acquisition, which then answers cancelled. A grant that
// the handler does not keep is given back. The lock must live until the operation has begun: for
// lazy tokens (use_awaitable, deferred) that is when they are awaited. The executor's context must
// outlive the client, or the client be closed first: a client's thread may still be on its way out of
// the context when the handler has run.
#pragma once

#include <holdfast/election.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>

#if (defined(BOOST_ASIO_VERSION) && !defined(ASIO_VERSION)) || !__has_include(<asio/version.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
namespace holdfast::detail {
namespace net = boost::asio;
}
#else
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_type.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
namespace holdfast::detail {
namespace net = ::asio;
}
#endif

#include <cstdint>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace holdfast {

namespace detail {

// Begins what `start` begins, given a stop token and a callback, and brings the answer to the
// handler.
template <class Answer>
struct initiation {
  template <class Handler, class Start>
  void operator()(Handler&& handler, Start start) const {
    std::stop_token token;
    if (auto slot = net::get_associated_cancellation_slot(handler); slot.is_connected()) {
      std::stop_source stop;
      token = stop.get_token();
      slot.assign([stop](net::cancellation_type type) mutable {
        if (type != net::cancellation_type::none) stop.request_stop();
      });
    }
    auto work = net::make_work_guard(handler);
    start(std::move(token),
          [kept = std::forward<Handler>(handler), work = std::move(work)](Answer answer) mutable {
            const auto executor = work.get_executor();
            net::dispatch(executor, [kept = std::move(kept), work = std::move(work),
                                     answer = std::move(answer)]() mutable {
              work.reset();
              std::move(kept)(std::move(answer));
            });
          });
  }
};

template <class Answer, class CompletionToken, class Start>
auto initiate(CompletionToken& token, Start start) {
  return net::async_initiate<CompletionToken, void(Answer)>(initiation<Answer>{}, token,
                                                            std::move(start));
}

}  // namespace detail

template <class CompletionToken>
auto async_acquire(mutex& lock, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<result<lease>, CompletionToken>(
      token, [&lock, options](std::stop_token stop, acquire_callback done) {
        lock.async_acquire(options, std::move(stop), std::move(done));
      });
}

// Writing.
template <class CompletionToken>
auto async_acquire(shared_mutex& lock, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<result<lease>, CompletionToken>(
      token, [&lock, options](std::stop_token stop, acquire_callback done) {
        lock.async_acquire(options, std::move(stop), std::move(done));
      });
}

// Reading.
template <class CompletionToken>
auto async_acquire_shared(shared_mutex& lock, const acquire_options& options,
                          CompletionToken&& token) {
  return detail::initiate<result<lease>, CompletionToken>(
      token, [&lock, options](std::stop_token stop, acquire_callback done) {
        lock.async_acquire_shared(options, std::move(stop), std::move(done));
      });
}

template <class CompletionToken>
auto async_acquire(semaphore& permits, const acquire_options& options, CompletionToken&& token,
                   std::uint32_t count = 1) {
  return detail::initiate<result<lease>, CompletionToken>(
      token, [&permits, options, count](std::stop_token stop, acquire_callback done) {
        permits.async_acquire(options, std::move(stop), std::move(done), count);
      });
}

template <class CompletionToken>
auto async_campaign(election& candidate, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<result<lease>, CompletionToken>(
      token, [&candidate, options](std::stop_token stop, acquire_callback done) {
        candidate.async_campaign(options, std::move(stop), std::move(done));
      });
}

template <class CompletionToken>
auto async_wait(const latch& counts, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<result<void>, CompletionToken>(
      token, [&counts, options](std::stop_token stop, spi::function<void(result<void>)> done) {
        counts.async_wait(options, std::move(stop), std::move(done));
      });
}

}  // namespace holdfast
