#include "c/call.hpp"

#include <chrono>

namespace holdfast::c {

void answer_queue::push(std::shared_ptr<call_state> answered) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
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

void answer_queue::close() {
  std::deque<std::shared_ptr<call_state>> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  gone.swap(answered_);
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
    // Anything longer counts as no limit; a greater number would overflow.
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

hf_status pending(hf_error* error) { return report(error, HF_PENDING, "no answer yet"); }

// Calls `take` with a call's answer, if it is of this type.
template <class T, class Take>
hf_status take_answer(const hf_call* call, hf_error* error, const Take& take) noexcept {
  return guarded(error, [&]() -> hf_status {
    call_state& state = *use(call, "call").inside;
    if (!state.outcome()) return pending(error);
    return report(error, state.use([&](call_state::value& value) -> result<void> {
      T* answer = std::get_if<T>(&value);
      if (answer == nullptr) mistake(errc::invalid, "the call answers something else");
      take(*answer);
      return {};
    }));
  });
}

}  // namespace

extern "C" {

hf_status hf_call_result(const hf_call* call, hf_error* error) {
  return hf_call_wait(call, 0, error);
}

hf_status hf_call_wait(const hf_call* call, hf_nanoseconds wait, hf_error* error) {
  return guarded(error, [&]() -> hf_status {
    const call_state& state = *use(call, "call").inside;
    const auto outcome = wait <= 0 ? state.outcome() : state.outcome_within(duration_of(wait));
    return outcome ? report(error, *outcome) : pending(error);
  });
}

hf_status hf_call_lease(hf_call* call, hf_lease** lease, hf_error* error) {
  return take_answer<std::unique_ptr<hf_lease>>(call, error, [&](auto& granted) {
    need(lease, "lease");
    if (!granted) mistake(errc::not_held, "the lease was taken before");
    *lease = granted.release();
  });
}

hf_status hf_call_number(const hf_call* call, uint32_t* number, hf_error* error) {
  return take_answer<std::optional<std::uint32_t>>(call, error, [&](const auto& answer) {
    need(number, "number");
    if (!answer) mistake(errc::not_held, "the latch is not set");
    *number = *answer;
  });
}

hf_status hf_call_leader(const hf_call* call, hf_leader* leader, hf_error* error) {
  return take_answer<std::optional<leader_info>>(call, error, [&](const auto& answer) {
    hf_leader made{};
    if (answer) {
      made.present = 1;
      made.fence = answer->fence.value();
      made.id = to_text(answer->id);
      made.claim = to_text(answer->claim);
    }
    write_struct(leader, made, "leader");
  });
}

hf_status hf_call_token(const hf_call* call, hf_text* token, hf_error* error) {
  return take_answer<std::string>(call, error, [&](const std::string& answer) {
    need(token, "token");
    *token = to_text(answer);
  });
}

hf_status hf_call_fd(hf_call* call, int* fd, hf_error* error) {
  return guarded(error, [&] {
    call_state& state = *use(call, "call").inside;
    need(fd, "fd");
    *fd = state.fd();
  });
}

void hf_call_cancel(hf_call* call) {
  if (call != nullptr && !call->made_in.left()) call->inside->cancel();
}

void hf_call_free(hf_call* call) {
  if (call == nullptr) return;
  if (!call->made_in.left()) call->inside->abandon();
  delete call;
}

hf_status hf_queue_new(hf_queue** queue, hf_error* error) {
  return guarded(error, [&] {
    need(queue, "queue");
    *queue = new hf_queue{{}, std::make_shared<answer_queue>()};
  });
}

int hf_queue_fd(const hf_queue* queue) {
  return queue == nullptr || queue->made_in.left() ? -1 : queue->inside->fd();
}

hf_status hf_queue_next(hf_queue* queue, uint64_t* tags, size_t limit, size_t* count,
                        hf_error* error) {
  return guarded(error, [&]() -> hf_status {
    answer_queue& answered = *use(queue, "queue").inside;
    need(tags, "tags");
    need(count, "count");
    if (limit == 0) mistake(errc::invalid, "limit is 0");
    *count = answered.take(tags, limit);
    return *count > 0 ? report(error, HF_OK, {}) : pending(error);
  });
}

void hf_queue_free(hf_queue* queue) {
  if (queue != nullptr && !queue->made_in.left()) queue->inside->close();
  delete queue;
}
}

}  // namespace holdfast::c
