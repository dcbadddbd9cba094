// The line and its futexes; see the header.
#include "runtime/wait_line.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace holdfast::runtime {

void waiter::sleep() noexcept {
  while (token_.exchange(0, std::memory_order_acquire) == 0) {
    // A signal or a changed word: look again.
    ::syscall(SYS_futex, &token_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
  }
}

void waiter::wake() noexcept {
  if (token_.exchange(1, std::memory_order_release) == 0) {
    ::syscall(SYS_futex, &token_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

waiter& wait_line::enter(const std::atomic<bool>& flag) {
  if (free_ == nullptr) free_ = &pool_.emplace_back();
  waiter& who = *free_;
  free_ = who.after_;

  who.flag_ = &flag;
  who.token_.store(0, std::memory_order_relaxed);
  who.after_ = nullptr;
  who.before_ = last_;
  (last_ == nullptr ? first_ : last_->after_) = &who;
  last_ = &who;
  waiter*& head = bucket_[bucket_of(&flag)];
  who.peer_ = head;
  head = &who;
  ++size_;
  return who;
}

void wait_line::leave(waiter& who) noexcept {
  (who.before_ == nullptr ? first_ : who.before_->after_) = who.after_;
  (who.after_ == nullptr ? last_ : who.after_->before_) = who.before_;
  waiter** link = &bucket_[bucket_of(who.flag_)];
  while (*link != &who) link = &(*link)->peer_;
  *link = who.peer_;
  --size_;

  who.flag_ = nullptr;
  who.after_ = free_;
  free_ = &who;
}

waiter* wait_line::first_unserved() const noexcept {
  for (waiter* who = first_; who != nullptr; who = who->after_) {
    if (who->unserved()) return who;
  }
  return nullptr;
}

waiter* wait_line::find(const void* flag) const noexcept {
  waiter* who = bucket_[bucket_of(flag)];
  while (who != nullptr && who->flag_ != flag) who = who->peer_;
  return who;
}

waiter* wait_line::find_next(const waiter& who) noexcept {
  waiter* other = who.peer_;
  while (other != nullptr && other->flag_ != who.flag_) other = other->peer_;
  return other;
}

void wait_line::wake_all() noexcept {
  for (waiter* who = first_; who != nullptr; who = who->after_) who->wake();
}

std::size_t wait_line::bucket_of(const void* flag) noexcept {
  // Flags live on stacks, at like offsets of large aligned blocks: the low bits alone say little.
  const auto address = reinterpret_cast<std::uintptr_t>(flag);
  return static_cast<std::size_t>((address * 0x9E3779B97F4A7C15ULL) >> 56);
}

}  // namespace holdfast::runtime
