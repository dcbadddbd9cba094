#include "c/call.hpp"
#include "c/client.hpp"

#include <holdfast/latch.hpp>

struct hf_latch {
  holdfast::c::home made_in{};
  holdfast::latch inside;
};

namespace holdfast::c {

namespace {

std::optional<countdown_id> countdown_of(const char* id, std::size_t length) {
  if (id == nullptr) return std::nullopt;
  return countdown_id::from(text_of(id, length));
}

template <class Number>
result<call_state::value> turn_number(result<Number> answer) {
  if (!answer) return tl::unexpected(std::move(answer.error()));
  return call_state::value(std::optional<std::uint32_t>(*answer));
}

// A call of a latch; `begin` is given its state.
template <class Begin>
hf_status start_with_latch(const hf_latch* latch, hf_queue* queue, std::uint64_t tag,
                           hf_call** call, hf_error* error, Begin&& begin) noexcept {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(latch, "latch"); !wrong) return wrong;
    return start_call(queue, tag, call, begin);
  });
}

}  // namespace

extern "C" {

hf_status hf_latch_new(const hf_client* client, const char* name, size_t name_length,
                       hf_nanoseconds life, hf_latch** latch, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    if (name == nullptr) return missing("name");
    if (latch == nullptr) return missing("latch");
    latch_options options;
    if (life != 0) options.life = duration_of(life);
    auto made =
        holdfast::latch::make(client->inside, std::string(text_of(name, name_length)), options);
    if (!made) return tl::unexpected(std::move(made.error()));
    *latch = new hf_latch{{}, std::move(*made)};
    return {};
  });
}

void hf_latch_free(hf_latch* latch) { delete latch; }

hf_status hf_latch_set(hf_latch* latch, uint32_t count, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(latch, "latch"); !wrong) return wrong;
    return latch->inside.set(count);
  });
}

hf_status hf_latch_set_start(hf_latch* latch, uint32_t count, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error) {
  return start_with_latch(latch, queue, tag, call, error, [&](call_state& state) {
    state.run(latch->inside.async_set(count), turn_nothing);
  });
}

hf_status hf_latch_count_down(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                              uint32_t* left, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(latch, "latch"); !wrong) return wrong;
    const auto answer = latch->inside.count_down(by, countdown_of(id, id_length));
    if (!answer) return tl::unexpected(answer.error());
    if (left != nullptr) *left = *answer;
    return {};
  });
}

hf_status hf_latch_count_down_start(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                                    hf_queue* queue, uint64_t tag, hf_call** call,
                                    hf_error* error) {
  return start_with_latch(latch, queue, tag, call, error, [&](call_state& state) {
    state.run(latch->inside.async_count_down(by, countdown_of(id, id_length)),
              turn_number<std::uint32_t>);
  });
}

hf_status hf_latch_count(const hf_latch* latch, uint32_t* count, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(latch, "latch"); !wrong) return wrong;
    if (count == nullptr) return missing("count");
    const auto answer = latch->inside.count();
    if (!answer) return tl::unexpected(answer.error());
    if (!*answer) return failure(errc::not_held, "the latch is not set");
    *count = **answer;
    return {};
  });
}

hf_status hf_latch_count_start(const hf_latch* latch, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error) {
  return start_with_latch(latch, queue, tag, call, error, [&](call_state& state) {
    state.run(latch->inside.async_count(), turn_number<std::optional<std::uint32_t>>);
  });
}

hf_status hf_latch_wait(const hf_latch* latch, hf_nanoseconds wait, hf_cancel* cancel,
                        hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(latch, "latch"); !wrong) return wrong;
    return latch->inside.wait({.wait = duration_of(wait)}, token_of(cancel));
  });
}

hf_status hf_latch_wait_start(const hf_latch* latch, hf_nanoseconds wait, hf_queue* queue,
                              uint64_t tag, hf_call** call, hf_error* error) {
  return start_with_latch(latch, queue, tag, call, error, [&](call_state& state) {
    state.run(latch->inside.async_wait({.wait = duration_of(wait)}), turn_nothing);
  });
}
}

}  // namespace holdfast::c
