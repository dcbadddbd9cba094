// The standard's named requirements for locks, which it does not offer as concepts.
#pragma once

#include <chrono>
#include <concepts>

namespace holdfast::test {

template <class T>
concept basic_lockable = requires(T lock) {
  lock.lock();
  lock.unlock();
};

template <class T>
concept lockable = basic_lockable<T> && requires(T lock) {
  { lock.try_lock() } -> std::same_as<bool>;
};

template <class T>
concept timed_lockable = lockable<T> && requires(T lock) {
  { lock.try_lock_for(std::chrono::seconds(1)) } -> std::same_as<bool>;
  { lock.try_lock_for(std::chrono::duration<double>(1)) } -> std::same_as<bool>;
  { lock.try_lock_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
  { lock.try_lock_until(std::chrono::system_clock::now()) } -> std::same_as<bool>;
};

template <class T>
concept shared_timed_lockable = timed_lockable<T> && requires(T lock) {
  lock.lock_shared();
  lock.unlock_shared();
  { lock.try_lock_shared() } -> std::same_as<bool>;
  { lock.try_lock_shared_for(std::chrono::seconds(1)) } -> std::same_as<bool>;
  { lock.try_lock_shared_until(std::chrono::steady_clock::now()) } -> std::same_as<bool>;
};

}  // namespace holdfast::test
