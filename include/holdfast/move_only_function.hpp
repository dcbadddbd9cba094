// A move-only callable, like std::move_only_function of C++23: completions capture what cannot be
// copied. Small callables are stored inline, so that a completion costs no allocation.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace holdfast {

template <class Signature>
class move_only_function;

template <class Result, class... Arguments>
class move_only_function<Result(Arguments...)> {
 public:
  move_only_function() noexcept = default;
  move_only_function(std::nullptr_t) noexcept {}

  template <class Callable>
  requires(!std::is_same_v<std::decay_t<Callable>, move_only_function> &&
           std::is_invocable_r_v<Result, std::decay_t<Callable>&, Arguments...>)
      move_only_function(Callable&& callable) {
    using held = std::decay_t<Callable>;
    if constexpr (fits<held>) {
      ::new (static_cast<void*>(storage_)) held(std::forward<Callable>(callable));
      table_ = &inline_table<held>;
    } else {
      ::new (static_cast<void*>(storage_)) held*(new held(std::forward<Callable>(callable)));
      table_ = &heap_table<held>;
    }
  }

  move_only_function(move_only_function&& other) noexcept { take(other); }
  move_only_function& operator=(move_only_function&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  move_only_function(const move_only_function&) = delete;
  move_only_function& operator=(const move_only_function&) = delete;
  ~move_only_function() { reset(); }

  explicit operator bool() const noexcept { return table_ != nullptr; }

  Result operator()(Arguments... arguments) {
    return table_->call(storage_, std::forward<Arguments>(arguments)...);
  }

 private:
  static constexpr std::size_t capacity = 56;

  template <class Held>
  static constexpr bool fits =
      sizeof(Held) <= capacity &&
      alignof(Held) <= alignof(std::max_align_t) && std::is_nothrow_move_constructible_v<Held>;

  struct table {
    Result (*call)(void*, Arguments&&...);
    void (*move)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <class Held>
  static constexpr table inline_table{
      [](void* at, Arguments&&... arguments) -> Result {
        return (*std::launder(static_cast<Held*>(at)))(std::forward<Arguments>(arguments)...);
      },
      [](void* from, void* to) noexcept {
        Held* source = std::launder(static_cast<Held*>(from));
        ::new (to) Held(std::move(*source));
        source->~Held();
      },
      [](void* at) noexcept { std::launder(static_cast<Held*>(at))->~Held(); }};

  template <class Held>
  static constexpr table heap_table{
      [](void* at, Arguments&&... arguments) -> Result {
        return (**static_cast<Held**>(at))(std::forward<Arguments>(arguments)...);
      },
      [](void* from, void* to) noexcept { ::new (to) Held*(*static_cast<Held**>(from)); },
      [](void* at) noexcept { delete *static_cast<Held**>(at); }};

  void take(move_only_function& other) noexcept {
    if (other.table_ == nullptr) return;
    other.table_->move(other.storage_, storage_);
    table_ = std::exchange(other.table_, nullptr);
  }
  void reset() noexcept {
    if (table_ != nullptr) std::exchange(table_, nullptr)->destroy(storage_);
  }

  alignas(std::max_align_t) std::byte storage_[capacity];
  const table* table_ = nullptr;
};

}  // namespace holdfast
