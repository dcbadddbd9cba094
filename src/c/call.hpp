// An asynchronous call of the C interface, and the queue that its answer goes to.
#pragma once

#include "c/answers.hpp"
#include "c/held.hpp"

#include <holdfast/awaitable.hpp>
#include <holdfast/election.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace holdfast::c {

class call_state;

// Calls that were answered. Thread-safe.
class answer_queue {
 public:
  void push(std::shared_ptr<call_state> answered);
  // Returns how many tags it wrote.
  std::size_t take(std::uint64_t* tags, std::size_t limit);
  // Keeps no call from here on: calls refer to it, too.
  void close();
  [[nodiscard]] int fd() const noexcept { return ready_.get(); }

 private:
  const signal_fd ready_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<call_state>> answered_;  // guarded by mutex_
  bool closed_ = false;                               // guarded by mutex_
};

// Thread-safe. Shared by the caller's handle, the operation that will answer, and the queue.
class call_state : public std::enable_shared_from_this<call_state> {
 public:
  using value = std::variant<std::monostate, std::unique_ptr<hf_lease>,
                             std::optional<std::uint32_t>, std::optional<leader_info>, std::string>;

  call_state(std::shared_ptr<answer_queue> queue, std::uint64_t tag)
      : queue_(std::move(queue)), tag_(tag) {}

  // Starts it; `turn` makes a result<value> of its result<T>.
  template <class T, class Turn = result<value> (*)(result<T>)>
  void run(awaitable<T> call, Turn turn = kept<T>) {
    auto started = std::move(call).take_inside();
    {
      const std::lock_guard lock(mutex_);
      operation_ = std::make_unique<stoppable_operation<T>>(started);
    }
    started->start([self = shared_from_this(), turn = std::move(turn)](
                       result<T> answer) mutable { self->answer(turn(std::move(answer))); },
                   {});
  }
  // Once.
  void answer(result<value> how);

  // None: pending.
  [[nodiscard]] std::optional<result<void>> outcome() const;
  // The same after at most `wait`.
  [[nodiscard]] std::optional<result<void>> outcome_within(duration wait) const;
  // Calls `with` with the value, if the call succeeded.
  template <class With>
  result<void> use(With&& with) {
    const std::lock_guard lock(mutex_);
    if (!answer_) return failure(errc::invalid, "no answer yet");
    if (!*answer_) return tl::unexpected(answer_->error());
    return std::forward<With>(with)(**answer_);
  }

  [[nodiscard]] int fd();
  void cancel() noexcept;
  void abandon() noexcept;
  [[nodiscard]] bool abandoned() const;
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_; }

  // Converts an answer to the form in which it is kept until it is asked for.
  template <class T>
  static result<value> kept(result<T> answer) {
    if (!answer) return tl::unexpected(std::move(answer.error()));
    if constexpr (std::is_void_v<T>) {
      return value{};
    } else if constexpr (std::is_same_v<T, lease> || std::is_same_v<T, multi_lease>) {
      return value(std::make_unique<hf_lease>(std::make_shared<held>(std::move(*answer))));
    } else if constexpr (std::is_same_v<T, std::uint32_t>) {
      return value(std::optional(*answer));
    } else {
      return value(std::move(*answer));
    }
  }

 private:
  struct stoppable {
    virtual ~stoppable() = default;
    virtual void cancel() noexcept = 0;
    virtual void abandon() noexcept = 0;
  };
  template <class T>
  struct stoppable_operation final : stoppable {
    explicit stoppable_operation(std::shared_ptr<detail::operation<T>> of) : inner(std::move(of)) {}
    void cancel() noexcept override { inner->cancel(); }
    void abandon() noexcept override { inner->abandon(); }
    std::shared_ptr<detail::operation<T>> inner;
  };

  const std::shared_ptr<answer_queue> queue_;
  const std::uint64_t tag_;
  mutable std::mutex mutex_;
  mutable std::condition_variable answered_;
  std::shared_ptr<stoppable> operation_;  // guarded by mutex_; until it is answered
  std::optional<result<value>> answer_;   // guarded by mutex_
  std::optional<signal_fd> ready_;        // guarded by mutex_
  bool abandoned_ = false;                // guarded by mutex_
};

}  // namespace holdfast::c

struct hf_queue {
  holdfast::c::home made_in{};
  std::shared_ptr<holdfast::c::answer_queue> inside;
};

struct hf_call {
  holdfast::c::home made_in{};
  std::shared_ptr<holdfast::c::call_state> inside;
};

namespace holdfast::c {

// Makes the call that every _start function returns; `begin` gets its state, to run something in
// it.
template <class Begin>
void begin_call(hf_queue* queue, std::uint64_t tag, hf_call** call, const Begin& begin) {
  need(call, "call");
  if (queue != nullptr) use(queue, "queue");
  auto made = std::make_unique<hf_call>();
  made->inside = std::make_shared<call_state>(queue == nullptr ? nullptr : queue->inside, tag);
  // Set before it begins: its tag may come out of the queue before this returns.
  *call = made.get();
  try {
    begin(*made->inside);
  } catch (...) {
    *call = nullptr;
    made->inside->abandon();
    throw;
  }
  static_cast<void>(made.release());
}

template <class T>
void start_call(hf_queue* queue, std::uint64_t tag, hf_call** call, awaitable<T> work) {
  begin_call(queue, tag, call, [&](call_state& state) { state.run(std::move(work)); });
}

}  // namespace holdfast::c
