// An asynchronous call in the hands of user code: its answer is delivered once, on the executor;
// after abandon() never, and what arrives then (a grant) is released by its own destructor.
//
// Thread-safe.
#pragma once

#include "core/engine.hpp"
#include "primitives/wait_for.hpp"

#include <holdfast/awaitable.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

namespace holdfast::detail {

template <class T>
class client_operation : public operation<T>,
                         public std::enable_shared_from_this<client_operation<T>> {
 public:
  using callback = move_only_function<void(result<T>)>;

  explicit client_operation(std::shared_ptr<core::engine> engine) : engine_(std::move(engine)) {}

  void start(callback done, executor where) final {
    const auto self = this->shared_from_this();  // the answer may drop the caller's
    {
      const std::lock_guard lock(mutex_);
      done_ = std::move(done);
      where_ = std::move(where);
    }
    begin();
    {
      const std::lock_guard lock(mutex_);
      begun_ = true;
      if (!cancelled_) return;
    }
    stop();
  }

  void abandon() noexcept final {
    callback dropped;
    {
      const std::lock_guard lock(mutex_);
      dropped = std::move(done_);
    }
    cancel();
  }

  void cancel() noexcept final {
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!begun_) return;  // start() sees it
    }
    stop();
  }

 protected:
  // Leads to one call of arrived(), perhaps before it returns.
  virtual void begin() = 0;
  // Ends a call that may take long. Only after begin() has returned; perhaps after the answer, and more than once.
  virtual void stop() noexcept {}

  void arrived(result<T> answer) {
    executor where;
    {
      const std::lock_guard lock(mutex_);
      where = std::move(where_);
    }
    engine_->deliver(
        [self = this->shared_from_this(), answer = std::move(answer)]() mutable {
          callback done;
          {
            const std::lock_guard lock(self->mutex_);
            done = std::move(self->done_);
          }
          if (done) done(std::move(answer));
        },
        where);
  }

 private:
  const std::shared_ptr<core::engine> engine_;
  std::mutex mutex_;
  // All below: guarded by mutex_.
  callback done_;
  executor where_;
  bool begun_ = false;
  bool cancelled_ = false;
};

// Called when a token is stopped: cancels what still waits.
template <class Waiting>
struct cancel_on_stop {
  std::weak_ptr<Waiting> waiting;

  void operator()() const noexcept {
    if (const auto alive = waiting.lock()) alive->cancel();
  }
};
template <class Waiting>
using stop_cancels = std::optional<std::stop_callback<cancel_on_stop<Waiting>>>;

// What both a blocking call and its asynchronous form start.
template <class T>
using verb = move_only_function<void(spi::completion<T>)>;

// A call that ends soon by itself: cancelling it changes nothing.
template <class T>
class short_operation final : public client_operation<T> {
 public:
  short_operation(std::shared_ptr<core::engine> engine, verb<T> begin)
      : client_operation<T>(std::move(engine)), verb_(std::move(begin)) {}

 protected:
  void begin() override {
    const auto self = std::static_pointer_cast<short_operation>(this->shared_from_this());
    std::exchange(verb_, nullptr)([self](result<T> answer) { self->arrived(std::move(answer)); });
  }

 private:
  verb<T> verb_;
};

// An answer that is known before anything begins, without a client's executor: delivered at once,
// on `where` or on the caller's thread.
template <class T>
class refused_operation final : public operation<T> {
 public:
  explicit refused_operation(error why) : why_(std::move(why)) {}

  void start(move_only_function<void(result<T>)> done, executor where) override {
    if (!where) return done(tl::unexpected(std::move(why_)));
    where([done = std::move(done), why = std::move(why_)]() mutable {
      done(tl::unexpected(std::move(why)));
    });
  }
  void cancel() noexcept override {}
  void abandon() noexcept override {}

 private:
  error why_;
};

template <class T>
awaitable<T> make_refusal(error why) {
  return awaitable<T>(std::make_shared<refused_operation<T>>(std::move(why)));
}

// Both forms of a call. An error instead of the verb is the answer: nothing is started.
template <class T>
result<T> call_now(const core::engine& engine, result<verb<T>> begin) {
  if (!begin) return tl::unexpected(std::move(begin.error()));
  return wait_for<T>(engine.shared_runtime(), *std::move(begin));
}
template <class T>
awaitable<T> call_soon(std::shared_ptr<core::engine> engine, result<verb<T>> begin) {
  if (!begin) return make_refusal<T>(std::move(begin.error()));
  return awaitable<T>(std::make_shared<short_operation<T>>(std::move(engine), *std::move(begin)));
}

}  // namespace holdfast::detail
