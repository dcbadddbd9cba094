#include "c/call.hpp"
#include "c/handles.hpp"

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

}  // namespace

extern "C" {

hf_status hf_latch_new(const hf_client* client, const char* name, size_t name_length,
                       hf_nanoseconds life, hf_latch** latch, hf_error* error) {
  return guarded(error, [&] {
    const auto& of = use(client, "client").inside;
    need(name, "name");
    need(latch, "latch");
    latch_options options;
    if (life != 0) options.life = duration_of(life);
    auto made = holdfast::latch::make(of, std::string(text_of(name, name_length)), options);
    *latch = new hf_latch{{}, std::move(made).value()};
  });
}

void hf_latch_free(hf_latch* latch) { delete latch; }

hf_status hf_latch_set(hf_latch* latch, uint32_t count, hf_error* error) {
  return guarded(error, [&] { return use(latch, "latch").inside.set(count); });
}

hf_status hf_latch_set_start(hf_latch* latch, uint32_t count, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error) {
  return guarded(
      error, [&] { start_call(queue, tag, call, use(latch, "latch").inside.async_set(count)); });
}

hf_status hf_latch_count_down(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                              uint32_t* left, hf_error* error) {
  return guarded(error, [&] {
    auto answer = use(latch, "latch").inside.count_down(by, countdown_of(id, id_length));
    const std::uint32_t count = answer.value();
    if (left != nullptr) *left = count;
  });
}

hf_status hf_latch_count_down_start(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                                    hf_queue* queue, uint64_t tag, hf_call** call,
                                    hf_error* error) {
  return guarded(error, [&] {
    auto& of = use(latch, "latch").inside;
    start_call(queue, tag, call, of.async_count_down(by, countdown_of(id, id_length)));
  });
}

hf_status hf_latch_count(const hf_latch* latch, uint32_t* count, hf_error* error) {
  return guarded(error, [&] {
    const auto& of = use(latch, "latch").inside;
    need(count, "count");
    const auto answer = of.count().value();
    if (!answer) mistake(errc::not_held, "the latch is not set");
    *count = *answer;
  });
}

hf_status hf_latch_count_start(const hf_latch* latch, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error) {
  return guarded(error,
                 [&] { start_call(queue, tag, call, use(latch, "latch").inside.async_count()); });
}

hf_status hf_latch_wait(const hf_latch* latch, hf_nanoseconds wait, hf_cancel* cancel,
                        hf_error* error) {
  return guarded(error, [&] {
    return use(latch, "latch").inside.wait({.wait = duration_of(wait)}, token_of(cancel));
  });
}

hf_status hf_latch_wait_start(const hf_latch* latch, hf_nanoseconds wait, hf_queue* queue,
                              uint64_t tag, hf_call** call, hf_error* error) {
  return guarded(error, [&] {
    start_call(queue, tag, call,
               use(latch, "latch").inside.async_wait({.wait = duration_of(wait)}));
  });
}
}

}  // namespace holdfast::c
