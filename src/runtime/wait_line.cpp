// The line and its futexes; see the header.
#include "runtime/wait_line.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <utility>

namespace holdfast::runtime {

void waiter::sleep() noexcept {
  while (true) {
    const std::uint32_t calls = row_->calls.load(std::memory_order_acquire);
    if (called_.exchange(false, std::memory_order_acquire)) return;
    // A signal, or a call in the meantime: look again.
    ::syscall(SYS_futex, &row_->calls, FUTEX_WAIT_BITSET_PRIVATE, calls, nullptr, nullptr, bit_);
  }
}

wake_call waiter::call() noexcept {
  if (called_.exchange(true, std::memory_order_release)) return {};
  return {row_, bit_};
}

void sleeping_row::wake(std::uint32_t bits) noexcept {
  calls.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, &calls, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, bits);
}

void wake_party::add(wake_call who) noexcept {
  if (who.bit == 0) return;
  if (who.row->in_party == 0) who.row->next_in_party = std::exchange(first_, who.row);
  who.row->in_party |= who.bit;
}

void wake_party::wake() noexcept {
  while (first_ != nullptr) {
    sleeping_row& row = *std::exchange(first_, first_->next_in_party);
    row.wake(std::exchange(row.in_party, 0));
  }
}

// Gives it the row and bit that were assigned least recently: a waiter that still has them is woken
// too, without effect.
void wait_line::lay_down(waiter& who) noexcept {
  constexpr std::uint32_t places = rows * neighbours;
  const std::uint32_t number = came_++;
  who.row_ = &rows_[number % places / neighbours];
  who.bit_ = std::uint32_t{1} << (number % neighbours + number / places * neighbours) % 32;
}

waiter& wait_line::enter(const std::atomic<bool>& flag) {
  if (free_ == nullptr) free_ = given_back_.exchange(nullptr, std::memory_order_acquire);
  if (free_ == nullptr) free_ = &pool_.emplace_back();
  waiter& who = *free_;
  free_ = who.after_;

  lay_down(who);
  who.flag_ = &flag;
  who.dismissed_.store(false, std::memory_order_relaxed);
  who.called_.store(false, std::memory_order_relaxed);
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
  unlink(who);
  who.flag_ = nullptr;
  who.after_ = std::exchange(free_, &who);
}

void wait_line::dismiss(waiter& who) noexcept {
  unlink(who);
  who.dismissed_.store(true, std::memory_order_release);
}

void wait_line::give_back(waiter& who) noexcept {
  who.after_ = given_back_.load(std::memory_order_relaxed);
  while (!given_back_.compare_exchange_weak(who.after_, &who, std::memory_order_release,
                                            std::memory_order_relaxed)) {
  }
}

void wait_line::unlink(waiter& who) noexcept {
  (who.before_ == nullptr ? first_ : who.before_->after_) = who.after_;
  (who.after_ == nullptr ? last_ : who.after_->before_) = who.before_;
  waiter** link = &bucket_[bucket_of(who.flag_)];
  while (*link != &who) link = &(*link)->peer_;
  *link = who.peer_;
  --size_;
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
  // Flags live on stacks, at similar offsets in large aligned blocks: the low bits alone say
  // little.
  const auto address = reinterpret_cast<std::uintptr_t>(flag);
  return static_cast<std::size_t>((address * 0x9E3779B97F4A7C15ULL) >> 56);
}

}  // namespace holdfast::runtime
