#include "stores/quorum/withdrawal.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::quorum {

namespace {

// Keeps itself alive by the timer or the request that it waits for; the quorum may end before it.
class withdrawal : public std::enable_shared_from_this<withdrawal> {
 public:
  withdrawal(const std::shared_ptr<council>& council, std::size_t member, spi::claim_ptr claim,
             time_point until)
      : council_(council),
        member_(member),
        claim_(std::move(claim)),
        until_(until),
        pause_(council->limit.first_pause) {
    council->withdrawals.fetch_add(1, std::memory_order_relaxed);
  }
  ~withdrawal() {
    if (const auto alive = council_.lock()) {
      alive->withdrawals.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  withdrawal(const withdrawal&) = delete;
  withdrawal& operator=(const withdrawal&) = delete;

  void wait() {
    const auto council = council_.lock();
    if (!council || council->closed.load(std::memory_order_acquire)) return;
    const time_point now = council->runtime->now();
    if (now >= until_) return;
    const duration pause =
        std::exchange(pause_, std::min(pause_ * 2, council->limit.longest_pause));
    council->runtime->at(now + pause, [self = shared_from_this()] { self->send(); });
  }

 private:
  void send() {
    const auto council = council_.lock();
    if (!council || council->closed.load(std::memory_order_acquire)) return;
    spi::op_context context = council->soon(time_point::max(), claim_->ttl);
    context.unanswered = true;
    council->members[member_].store->leave(
        claim_, context, [self = shared_from_this()](const result<spi::departure>& answer) {
          if (!answer && answer.error() == errc::unavailable) self->wait();
        });
  }

  const std::weak_ptr<council> council_;
  const std::size_t member_;
  const spi::claim_ptr claim_;
  const time_point until_;
  duration pause_;
};

}  // namespace

void withdraw_later(const std::shared_ptr<council>& council, std::size_t member,
                    spi::claim_ptr claim, time_point until) {
  if (council->withdrawals.load(std::memory_order_relaxed) >= council->limit.withdrawals) return;
  std::make_shared<withdrawal>(council, member, std::move(claim), until)->wait();
}

}  // namespace holdfast::quorum
