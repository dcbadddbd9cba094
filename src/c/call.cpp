#include "c/call.hpp"

#include <chrono>

namespace holdfast::c {

void answer_queue::push(std::shared_ptr<call_state> answered) {
  const std::lock_guard lock(mutex_);
  answered_.push_back(std::move(answered));
  if (answered_.size() == 1) ready_.set();
}

std::size_t answer_queue::take(std::uint64_t* tags, std::size_t limit) {
  std::deque<std::shared_ptr<call_state>> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  while (count < limit && !answered_.empty()) {
    if (!answered_.front()->abandoned()) tags[count++] = answered_.front()->tag();
    gone.push_back(std::move(answered_.front()));
    answered_.pop_front();
    if (answered_.empty()) ready_.clear();
  }
  return count;
}

void call_state::answer(result<value> how) {
  std::shared_ptr<stoppable> done;
  {
    const std::lock_guard lock(mutex_);
    if (abandoned_) return;
    answer_.emplace(std::move(how));
    done = std::move(operation_);
    if (ready_) ready_->set();
    answered_.notify_all();
  }
  if (queue_) queue_->push(shared_from_this());
}

std::optional<result<void>> call_state::outcome() const {
  const std::lock_guard lock(mutex_);
  if (!answer_) return std::nullopt;
  if (!*answer_) return result<void>(tl::unexpected(answer_->error()));
  return result<void>{};
}

std::optional<result<void>> call_state::outcome_within(duration wait) const {
  {
    std::unique_lock lock(mutex_);
    const auto there = [this] { return answer_.has_value(); };
    // Longer than this is no limit; a greater number would overflow.
    constexpr duration longest = std::chrono::hours(24 * 365 * 10);
    if (wait > longest) {
      answered_.wait(lock, there);
    } else {
      answered_.wait_for(lock, wait, there);
    }
  }
  return outcome();
}

int call_state::fd() {
  const std::lock_guard lock(mutex_);
  if (!ready_) {
    ready_.emplace();
    if (answer_) ready_->set();
  }
  return ready_->get();
}

void call_state::cancel() noexcept {
  std::shared_ptr<stoppable> running;
  {
    const std::lock_guard lock(mutex_);
    running = operation_;
  }
  if (running) running->cancel();
}

void call_state::abandon() noexcept {
  std::shared_ptr<stoppable> running;
  std::optional<result<value>> dropped;  // a lease in it is released
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
    running = std::move(operation_);
    dropped = std::exchange(answer_, std::nullopt);
  }
  if (running) running->abandon();
}

bool call_state::abandoned() const {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

namespace {

// Fills the error of a call that has an outcome; HF_PENDING if it has none.
hf_status told(hf_error* error, const std::optional<result<void>>& outcome) {
  return outcome ? report(error, *outcome) : report(error, HF_PENDING, "no answer yet");
}

template <class Use>
hf_status use_call(const hf_call* call, hf_error* error, Use&& use) noexcept {
  try {
    if (const auto wrong = check(call, "call"); !wrong) return report(error, wrong);
    if (!call->inside->outcome()) return report(error, HF_PENDING, "no answer yet");
    return report(error, call->inside->use(std::forward<Use>(use)));
  } catch (...) {
    return report_exception(error);
  }
}

tl::unexpected<error> other_answer() {
  return failure(errc::invalid, "the call answers something else");
}

}  // namespace

extern "C" {

hf_status hf_call_result(const hf_call* call, hf_error* error) {
  return hf_call_wait(call, 0, error);
}

hf_status hf_call_wait(const hf_call* call, hf_nanoseconds wait, hf_error* error) {
  try {
    if (const auto wrong = check(call, "call"); !wrong) return report(error, wrong);
    if (wait <= 0) return told(error, call->inside->outcome());
    return told(error, call->inside->outcome_within(duration_of(wait)));
  } catch (...) {
    return report_exception(error);
  }
}

hf_status hf_call_lease(hf_call* call, hf_lease** lease, hf_error* error) {
  return use_call(call, error, [&](call_state::value& value) -> result<void> {
    auto* granted = std::get_if<std::unique_ptr<hf_lease>>(&value);
    if (granted == nullptr) return other_answer();
    if (lease == nullptr) return missing("lease");
    if (!*granted) return failure(errc::not_held, "the lease was taken before");
    *lease = granted->release();
    return {};
  });
}

hf_status hf_call_number(const hf_call* call, uint32_t* number, hf_error* error) {
  return use_call(call, error, [&](const call_state::value& value) -> result<void> {
    const auto* answer = std::get_if<std::optional<std::uint32_t>>(&value);
    if (answer == nullptr) return other_answer();
    if (number == nullptr) return missing("number");
    if (!*answer) return failure(errc::not_held, "the latch is not set");
    *number = **answer;
    return {};
  });
}

hf_status hf_call_leader(const hf_call* call, hf_leader* leader, hf_error* error) {
  return use_call(call, error, [&](const call_state::value& value) -> result<void> {
    const auto* answer = std::get_if<std::optional<leader_info>>(&value);
    if (answer == nullptr) return other_answer();
    hf_leader made{};
    if (*answer) {
      made.present = 1;
      made.fence = (*answer)->fence.value();
      made.id = to_text((*answer)->id);
      made.claim = to_text((*answer)->claim);
    }
    return write_struct(leader, made, "leader");
  });
}

hf_status hf_call_token(const hf_call* call, hf_text* token, hf_error* error) {
  return use_call(call, error, [&](const call_state::value& value) -> result<void> {
    const auto* answer = std::get_if<std::string>(&value);
    if (answer == nullptr) return other_answer();
    if (token == nullptr) return missing("token");
    *token = to_text(*answer);
    return {};
  });
}

hf_status hf_call_fd(hf_call* call, int* fd, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(call, "call"); !wrong) return wrong;
    if (fd == nullptr) return missing("fd");
    *fd = call->inside->fd();
    return {};
  });
}

void hf_call_cancel(hf_call* call) {
  if (check(call, "call")) call->inside->cancel();
}

void hf_call_free(hf_call* call) {
  if (call == nullptr) return;
  if (!call->made_in.left()) call->inside->abandon();
  delete call;
}

hf_status hf_queue_new(hf_queue** queue, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (queue == nullptr) return missing("queue");
    *queue = new hf_queue{{}, std::make_shared<answer_queue>()};
    return {};
  });
}

int hf_queue_fd(const hf_queue* queue) {
  return queue == nullptr || queue->made_in.left() ? -1 : queue->inside->fd();
}

hf_status hf_queue_next(hf_queue* queue, uint64_t* tags, size_t limit, size_t* count,
                        hf_error* error) {
  try {
    if (const auto wrong = check(queue, "queue"); !wrong) return report(error, wrong);
    if (tags == nullptr || count == nullptr || limit == 0) {
      return report(error, result<void>(missing("tags")));
    }
    *count = queue->inside->take(tags, limit);
    return *count > 0 ? report(error, HF_OK, {}) : report(error, HF_PENDING, "no answer yet");
  } catch (...) {
    return report_exception(error);
  }
}

void hf_queue_free(hf_queue* queue) { delete queue; }
}

}  // namespace holdfast::c
