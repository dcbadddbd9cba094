// Leases that move between processes: detached into a token, continued, renewed and released by it.
#include "c/call.hpp"
#include "c/client.hpp"

#include <holdfast/client.hpp>

#include <string>
#include <utility>

namespace holdfast::c {

namespace {

// The lease holds nothing from here on, unless it cannot be detached.
result<awaitable<std::string>> begin_detaching(hf_lease* of) {
  if (auto wrong = check(of, "lease"); !wrong) return tl::unexpected(std::move(wrong.error()));
  if (of->released) return released_before();
  if (of->inside->recursive()) {
    return failure(errc::unsupported, "a recursive lock belongs to its owner");
  }
  return of->inside->with([&](held::hold& taken) -> result<awaitable<std::string>> {
    auto* one = std::get_if<lease>(&taken);
    if (one == nullptr) return failure(errc::unsupported, "a multi-lock is several leases");
    if (!*one) return released_before();
    auto begun = one->async_detach();
    if (!*one) of->released = true;
    return begun;
  });
}

result<void> start_detaching(hf_lease* of, hf_queue* queue, std::uint64_t tag, hf_call** call) {
  if (call == nullptr) return missing("call");
  auto begun = begin_detaching(of);
  if (!begun) return tl::unexpected(std::move(begun.error()));
  return start_call(queue, tag, call, [&](call_state& state) {
    state.run(std::move(*begun), [](result<std::string> answer) -> result<call_state::value> {
      if (!answer) return tl::unexpected(std::move(answer.error()));
      return call_state::value(std::move(*answer));
    });
  });
}

result<adopt_options> adopt_options_of(const hf_adopt_options* options) {
  const auto given = read_struct(options, "hf_adopt_options");
  if (!given) return tl::unexpected(given.error());
  adopt_options made;
  made.ttl = duration_of(given->ttl);
  made.notice = duration_of(given->notice);
  if (given->max_hold != 0) made.max_hold = duration_of(given->max_hold);
  if (given->wait != 0) made.wait = duration_of(given->wait);
  made.renew = given->no_renewal != 0 ? renew::never : renew::automatic;
  return made;
}

result<void> check_token(const hf_client* client, const char* token) {
  if (auto wrong = check(client, "client"); !wrong) return wrong;
  if (token == nullptr) return missing("token");
  return {};
}

// `use` is given the client and begins what is done with the token.
template <class Use>
hf_status start_with_token(const hf_client* client, const char* token, hf_queue* queue,
                           std::uint64_t tag, hf_call** call, hf_error* error, Use&& use) noexcept {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check_token(client, token); !wrong) return wrong;
    return start_call(queue, tag, call,
                      [&](call_state& state) { state.run(use(client->inside), turn_nothing); });
  });
}

}  // namespace

extern "C" {

hf_status hf_detach(hf_lease* lease, hf_text* token, hf_error* error) {
  if (token == nullptr) return guarded(error, []() -> result<void> { return missing("token"); });
  return wait_through(
      error, [&](hf_call** call) { return start_detaching(lease, nullptr, 0, call); },
      [&](hf_call* call) {
        hf_text found{};
        const hf_status status = hf_call_token(call, &found, error);
        if (status != HF_OK) return status;
        return guarded(error, [&]() -> result<void> {
          *token = lease->inside->with(
              [&](const held::hold&) { return lease->inside->keep(std::string(text_of(found))); });
          return {};
        });
      });
}

hf_status hf_detach_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error) {
  return guarded(error, [&] { return start_detaching(lease, queue, tag, call); });
}

hf_status hf_adopt(const hf_client* client, const char* token, size_t token_length,
                   const hf_adopt_options* options, hf_cancel* cancel, hf_lease** lease,
                   hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check_token(client, token); !wrong) return wrong;
    if (lease == nullptr) return missing("lease");
    const auto how = adopt_options_of(options);
    if (!how) return tl::unexpected(how.error());
    auto adopted = client->inside.adopt(text_of(token, token_length), *how, token_of(cancel));
    if (!adopted) return tl::unexpected(std::move(adopted.error()));
    *lease = new hf_lease(std::make_shared<held>(std::move(*adopted)));
    return {};
  });
}

hf_status hf_adopt_start(const hf_client* client, const char* token, size_t token_length,
                         const hf_adopt_options* options, hf_queue* queue, uint64_t tag,
                         hf_call** call, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check_token(client, token); !wrong) return wrong;
    const auto how = adopt_options_of(options);
    if (!how) return tl::unexpected(how.error());
    return start_call(queue, tag, call, [&](call_state& state) {
      state.run(client->inside.async_adopt(text_of(token, token_length), *how), turn_lease<lease>);
    });
  });
}

hf_status hf_renew_token(const hf_client* client, const char* token, size_t token_length,
                         hf_nanoseconds ttl, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check_token(client, token); !wrong) return wrong;
    return client->inside.renew(text_of(token, token_length), duration_of(ttl));
  });
}

hf_status hf_renew_token_start(const hf_client* client, const char* token, size_t token_length,
                               hf_nanoseconds ttl, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error) {
  return start_with_token(client, token, queue, tag, call, error, [&](const auto& of) {
    return of.async_renew(text_of(token, token_length), duration_of(ttl));
  });
}

hf_status hf_release_token(const hf_client* client, const char* token, size_t token_length,
                           hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check_token(client, token); !wrong) return wrong;
    return client->inside.release(text_of(token, token_length));
  });
}

hf_status hf_release_token_start(const hf_client* client, const char* token, size_t token_length,
                                 hf_queue* queue, uint64_t tag, hf_call** call, hf_error* error) {
  return start_with_token(client, token, queue, tag, call, error, [&](const auto& of) {
    return of.async_release(text_of(token, token_length));
  });
}
}

}  // namespace holdfast::c
