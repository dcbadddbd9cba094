// Completion tokens for Asio, standalone or Boost's: whichever was included before this header,
// else whichever is installed, standalone first.
//
//   auto lease = co_await holdfast::async_acquire(stock, {.wait = 1s}, asio::use_awaitable);
//
// The handler runs on its associated executor (without one: on the client's), which is kept busy in the
// meantime. Its cancellation slot stops the acquisition, which then returns cancelled. A grant that
// the handler does not keep is released. The lock must live until the operation has started: for
// lazy tokens (use_awaitable, deferred) that is when they are awaited. The executor's context must
// outlive the client, or the client must be closed first: a client's thread may still be leaving the
// context when the handler has run.
#pragma once

#include <holdfast/election.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/multi_lock.hpp>
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
#include <memory>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>

namespace holdfast {

namespace detail {

// Starts what `make` returns and passes its answer to the handler.
template <class T>
struct initiation {
  template <class Handler, class Make>
  void operator()(Handler&& handler, Make make) const {
    const std::shared_ptr<operation<T>> begun = make().take_inside();
    if (auto slot = net::get_associated_cancellation_slot(handler); slot.is_connected()) {
      slot.assign([begun](net::cancellation_type type) {
        if (type != net::cancellation_type::none) begun->cancel();
      });
    }
    auto work = net::make_work_guard(handler);
    begun->start(
        [kept = std::forward<Handler>(handler), work = std::move(work)](result<T> answer) mutable {
          const auto executor = work.get_executor();
          net::dispatch(executor, [kept = std::move(kept), work = std::move(work),
                                   answer = std::move(answer)]() mutable {
            work.reset();
            std::move(kept)(std::move(answer));
          });
        },
        {});
  }
};

template <class T, class CompletionToken, class Make>
auto initiate(CompletionToken& token, Make make) {
  return net::async_initiate<CompletionToken, void(result<T>)>(initiation<T>{}, token,
                                                               std::move(make));
}

}  // namespace detail

template <class CompletionToken>
auto async_acquire(mutex& lock, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<lease, CompletionToken>(
      token, [&lock, options] { return lock.async_acquire(options); });
}

// For writing.
template <class CompletionToken>
auto async_acquire(shared_mutex& lock, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<lease, CompletionToken>(
      token, [&lock, options] { return lock.async_acquire(options); });
}

// For reading.
template <class CompletionToken>
auto async_acquire_shared(shared_mutex& lock, const acquire_options& options,
                          CompletionToken&& token) {
  return detail::initiate<lease, CompletionToken>(
      token, [&lock, options] { return lock.async_acquire_shared(options); });
}

template <class CompletionToken>
auto async_try_upgrade(shared_mutex& lock, lease& reader, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(
      token, [&lock, &reader] { return lock.async_try_upgrade(reader); });
}

template <class CompletionToken>
auto async_downgrade(shared_mutex& lock, lease& writer, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(
      token, [&lock, &writer] { return lock.async_downgrade(writer); });
}

template <class CompletionToken>
auto async_acquire(semaphore& permits, const acquire_options& options, CompletionToken&& token,
                   std::uint32_t count = 1) {
  return detail::initiate<lease, CompletionToken>(token, [&permits, options, count] {
    return permits.async_acquire(options, std::stop_token{}, count);
  });
}

template <class CompletionToken>
auto async_available(const semaphore& permits, CompletionToken&& token) {
  return detail::initiate<std::uint32_t, CompletionToken>(
      token, [&permits] { return permits.async_available(); });
}

template <class CompletionToken>
auto async_acquire(multi_lock& locks, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<multi_lease, CompletionToken>(
      token, [&locks, options] { return locks.async_acquire(options); });
}

template <class CompletionToken>
auto async_campaign(election& candidate, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<lease, CompletionToken>(
      token, [&candidate, options] { return candidate.async_campaign(options); });
}

template <class CompletionToken>
auto async_leader(const election& watched, CompletionToken&& token) {
  return detail::initiate<std::optional<leader_info>, CompletionToken>(
      token, [&watched] { return watched.async_leader(); });
}

template <class CompletionToken>
auto async_set(latch& counts, std::uint32_t count, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(
      token, [&counts, count] { return counts.async_set(count); });
}

template <class CompletionToken>
auto async_count_down(latch& counts, std::uint32_t by, CompletionToken&& token,
                      std::optional<countdown_id> id = std::nullopt) {
  return detail::initiate<std::uint32_t, CompletionToken>(
      token, [&counts, by, id] { return counts.async_count_down(by, id); });
}

template <class CompletionToken>
auto async_count(const latch& counts, CompletionToken&& token) {
  return detail::initiate<std::optional<std::uint32_t>, CompletionToken>(
      token, [&counts] { return counts.async_count(); });
}

template <class CompletionToken>
auto async_wait(const latch& counts, const acquire_options& options, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(
      token, [&counts, options] { return counts.async_wait(options); });
}

// Releases a lease or a multi_lease.
template <class Lease, class CompletionToken>
requires(std::is_same_v<Lease, lease> || std::is_same_v<Lease, multi_lease>)  //
    auto async_release(Lease& held, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(token, [&held] { return held.async_release(); });
}

// Composes: `co_await (async_lost(lease, use_awaitable) || work())` ends the work when the lease is
// lost, and stops waiting for the loss when the work is done.
template <class CompletionToken>
auto async_lost(const lease& held, CompletionToken&& token) {
  return detail::initiate<void, CompletionToken>(token, [&held] { return async_lost(held); });
}

}  // namespace holdfast
