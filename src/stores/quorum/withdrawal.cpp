#include "stores/quorum/withdrawal.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::quorum {

namespace {

// Keeps itself alive by the timer or the request that it waits for; the quorum may end before it.
class withdrawal : public std::enable_shared_from_this<withdrawal> {
 public:
  withdrawal(const std::shared_ptr<quorum_context>& quorum_context, std::size_t member,
             spi::claim_ptr claim, time_point until)
      : context_(quorum_context),
        member_(member),
        claim_(std::move(claim)),
        until_(until),
        pause_(quorum_context->limit.first_pause) {
    quorum_context->withdrawals.fetch_add(1, std::memory_order_relaxed);
  }
  ~withdrawal() {
    if (const auto alive = context_.lock()) {
      alive->withdrawals.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  withdrawal(const withdrawal&) = delete;
  withdrawal& operator=(const withdrawal&) = delete;

  void wait() {
    const auto quorum_context = context_.lock();
    if (!quorum_context || quorum_context->closed.load(std::memory_order_acquire)) return;
    const time_point now = quorum_context->runtime->now();
    if (now >= until_) return;
    const duration pause =
        std::exchange(pause_, std::min(pause_ * 2, quorum_context->limit.longest_pause));
    quorum_context->runtime->at(now + pause, [self = shared_from_this()] { self->send(); });
  }

 private:
  void send() {
    const auto quorum_context = context_.lock();
    if (!quorum_context || quorum_context->closed.load(std::memory_order_acquire)) return;
    spi::op_context context = quorum_context->soon(time_point::max(), claim_->ttl);
    context.unanswered = true;
    quorum_context->members[member_].store->leave(
        claim_, context, [self = shared_from_this()](const result<spi::departure>& answer) {
          if (!answer && answer.error() == errc::unavailable) self->wait();
        });
  }

  const std::weak_ptr<quorum_context> context_;
  const std::size_t member_;
  const spi::claim_ptr claim_;
  const time_point until_;
  duration pause_;
};

}  // namespace

void withdraw_later(const std::shared_ptr<quorum_context>& quorum_context, std::size_t member,
                    spi::claim_ptr claim, time_point until) {
  if (quorum_context->withdrawals.load(std::memory_order_relaxed) >=
      quorum_context->limit.withdrawals)
    return;
  std::make_shared<withdrawal>(quorum_context, member, std::move(claim), until)->wait();
}

}  // namespace holdfast::quorum
