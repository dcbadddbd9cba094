#include "core/hold.hpp"
#include "core/names.hpp"
#include "core/thread_holds.hpp"
#include "primitives/lock_handle_inside.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/detail/lock_handle.hpp>

#include <utility>

namespace holdfast::detail {

core::request lock_handle::inside::request(const acquire_options& how) const {
  lock_options lock = options;
  lock.payload = {};  // a view of something that may not outlive the request
  return {.resource = resource,
          .mode = terms.mode,
          .role = terms.role,
          .permits = terms.permits,
          .max = terms.max,
          .lock = lock,
          .wait = how.wait,
          .payload = terms.payload,
          .thread = 0,
          .local_queue = local_queue};
}

lock_handle::lock_handle(const client& client, std::string name, const lock_options& options,
                         lock_handle_terms terms) {
  if (auto fine = core::check_name(name); !fine) throw lock_error(fine.error());
  if (terms.role != spi::role::leader) terms.payload = options.payload;
  if (terms.payload.size() > core::longest_payload) {
    throw lock_error(error{errc::invalid, "a payload has at most 256 bytes"});
  }
  terms.payload = core::clean_payload(terms.payload);
  auto made = std::make_shared<inside>();
  made->client = client.inside();
  made->resource = {made->client->options.name_space, std::move(name)};
  made->options = options;
  made->terms = std::move(terms);
  made->options.payload = made->terms.payload;
  made->local_queue = made->client->engine->local_queue_of(made->resource);
  // Limits only: acquire(), not the constructor, reports what the engine cannot do.
  if (auto fine = core::check_limits(made->request({}), core::limits{}); !fine) {
    throw lock_error(fine.error());
  }
  inside_ = std::move(made);
}

const std::string& lock_handle::name() const noexcept { return inside_->resource.name; }

const lock_options& lock_handle::options() const noexcept { return inside_->options; }

lock_handle lock_handle::with(std::uint32_t permits, std::uint32_t max) const {
  auto made = std::make_shared<inside>(*inside_);
  made->terms.permits = permits;
  made->terms.max = max;
  return lock_handle(std::move(made));
}

result<lease> acquire_now(const client::state& client, core::request request,
                          std::stop_token token) {
  if (auto fine = check_may_block(*client.runtime); !fine) {
    return tl::unexpected(std::move(fine.error()));
  }
  if (token.stop_requested()) return failure(errc::cancelled, "stopped before it began");
  request.thread = core::thread_token();
  auto meeting = std::make_shared<rendezvous<std::shared_ptr<core::hold>>>(client.runtime);
  const auto acquisition = client.engine->acquire(
      std::move(request), [meeting](result<std::shared_ptr<core::hold>> answer) {
        meeting->arrive(std::move(answer));
      });
  const std::stop_callback on_stop(std::move(token), [&acquisition] {
    if (acquisition) acquisition->cancel();
  });
  auto answer = meeting->wait();
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return lease(std::move(*answer));
}

result<lease> lock_handle::acquire(const acquire_options& options, std::stop_token token) const {
  return acquire_now(*inside_->client, inside_->request(options), std::move(token));
}

void lock_handle::async_acquire(const acquire_options& options, std::stop_token token,
                                acquire_callback done) const {
  std::make_shared<acquire_operation>(inside_->client, inside_->request(options), std::move(token))
      ->start(std::move(done), {});
}

acquire_awaitable lock_handle::async_acquire(const acquire_options& options,
                                             std::stop_token token) const {
  return acquire_awaitable(std::make_shared<acquire_operation>(
      inside_->client, inside_->request(options), std::move(token)));
}

acquire_operation::acquire_operation(const std::shared_ptr<client::state>& client,
                                     core::request request, std::stop_token token)
    : client_operation<lease>(client->engine),
      engine_(client->engine),
      request_(std::move(request)),
      token_(std::move(token)) {}

void acquire_operation::begin() {
  const auto self = std::static_pointer_cast<acquire_operation>(shared_from_this());
  if (token_.stop_requested()) {
    return answered(failure(errc::cancelled, "stopped before it began"));
  }
  const auto acquisition = engine_->acquire(
      std::move(request_),
      [self](result<std::shared_ptr<core::hold>> answer) { self->answered(std::move(answer)); });
  {
    const std::lock_guard lock(mutex_);
    if (answered_ || !acquisition) return;
    acquisition_ = acquisition;
  }
  // Outside the lock: a token that is stopped already calls back at once. If the answer comes just
  // now, the callback that is left behind cancels nothing.
  if (token_.stop_possible()) on_stop_.emplace(token_, acquisition);
}

void acquire_operation::stop() noexcept {
  std::shared_ptr<core::acquisition> acquisition;
  {
    const std::lock_guard lock(mutex_);
    acquisition = std::move(acquisition_);
  }
  if (acquisition) acquisition->cancel();
}

void acquire_operation::answered(result<std::shared_ptr<core::hold>> answer) {
  {
    const std::lock_guard lock(mutex_);
    answered_ = true;
    acquisition_.reset();
  }
  if (answer) return arrived(lease(std::move(*answer)));
  arrived(tl::unexpected(std::move(answer.error())));
}

}  // namespace holdfast::detail
