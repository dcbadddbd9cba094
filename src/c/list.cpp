#include "c/list.hpp"

#include "c/client.hpp"

namespace holdfast::c {

namespace {

// Asks the client; what it finds becomes a list.
template <class Ask>
hf_status list_of(const hf_client* client, hf_list** list, hf_error* error, Ask&& ask) noexcept {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    if (list == nullptr) return missing("list");
    auto found = ask();
    if (!found) return tl::unexpected(std::move(found.error()));
    *list = new hf_list{std::move(*found)};
    return {};
  });
}

template <class Kind>
const Kind* found_as(const hf_list* list) {
  return list == nullptr ? nullptr : std::get_if<Kind>(&list->found);
}

tl::unexpected<error> no_such_row() { return failure(errc::invalid, "no such row in this list"); }

hf_claim claim_of(const holder& each) {
  hf_claim made{};
  made.claim = to_text(each.claim);
  made.payload = to_text(each.payload);
  if (!each.kept_by.empty()) made.kept_by = to_text(each.kept_by);
  made.fence = each.fence ? each.fence->value() : 0;
  made.age = to_time(each.held_for);
  made.remaining = to_time(each.remaining);
  made.permits = each.permits;
  made.mode = static_cast<std::int32_t>(each.mode);
  made.by_session = each.by_session ? 1 : 0;
  return made;
}

hf_claim claim_of(const waiter& each) {
  hf_claim made{};
  made.claim = to_text(each.claim);
  made.payload = to_text(each.payload);
  made.age = to_time(each.waiting_for);
  made.remaining = -1;
  made.permits = each.permits;
  made.mode = static_cast<std::int32_t>(each.mode);
  made.waiting = 1;
  return made;
}

static_assert(static_cast<int>(lock_mode::permit) == HF_PERMIT);
static_assert(static_cast<int>(revocation::safe) == HF_REVOKE_SAFE);
static_assert(static_cast<int>(health_check::status::fail) == HF_CHECK_FAIL);

}  // namespace

extern "C" {

hf_status hf_inspect(const hf_client* client, const char* name, size_t name_length, hf_list** list,
                     hf_error* error) {
  return list_of(client, list, error, [&]() -> result<resource_state> {
    if (name == nullptr) return missing("name");
    return client->inside.inspect(std::string(text_of(name, name_length)));
  });
}

hf_status hf_names(const hf_client* client, const char* prefix, size_t prefix_length,
                   hf_list** list, hf_error* error) {
  return list_of(client, list, error,
                 [&] { return client->inside.list(std::string(text_of(prefix, prefix_length))); });
}

hf_status hf_doctor(const hf_client* client, hf_list** list, hf_error* error) {
  return list_of(client, list, error, [&] { return client->inside.probe(); });
}

hf_status hf_revoke(const hf_client* client, const char* name, size_t name_length, int how,
                    const char* claim, size_t claim_length, hf_list** list, hf_error* error) {
  hf_list* taken = nullptr;
  const hf_status status = list_of(client, &taken, error, [&]() -> result<resource_state> {
    if (name == nullptr) return missing("name");
    if (how != HF_REVOKE_FORCE && how != HF_REVOKE_SAFE) {
      return failure(errc::invalid, "no such way to revoke");
    }
    holdfast::client asked = client->inside;
    auto holders =
        asked.revoke(std::string(text_of(name, name_length)), static_cast<revocation>(how),
                     std::string(text_of(claim, claim_length)));
    if (!holders) return tl::unexpected(std::move(holders.error()));
    return resource_state{.holders = std::move(*holders), .waiters = {}};
  });
  if (list != nullptr && status == HF_OK) {
    *list = taken;
  } else {
    delete taken;
  }
  return status;
}

size_t hf_list_count(const hf_list* list) {
  if (list == nullptr) return 0;
  if (const auto* state = found_as<resource_state>(list)) {
    return state->holders.size() + state->waiters.size();
  }
  if (const auto* names = found_as<std::vector<resource_summary>>(list)) return names->size();
  return std::get<std::vector<health_check>>(list->found).size();
}

hf_status hf_list_claim(const hf_list* list, size_t index, hf_claim* claim, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto* state = found_as<resource_state>(list);
    if (state == nullptr || index >= hf_list_count(list)) return no_such_row();
    const std::size_t held = state->holders.size();
    return write_struct(
        claim,
        index < held ? claim_of(state->holders[index]) : claim_of(state->waiters[index - held]),
        "claim");
  });
}

hf_status hf_list_name(const hf_list* list, size_t index, hf_name* name, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto* names = found_as<std::vector<resource_summary>>(list);
    if (names == nullptr || index >= names->size()) return no_such_row();
    const resource_summary& each = (*names)[index];
    hf_name made{};
    made.name = to_text(each.name);
    made.holders = each.holders;
    made.waiters = each.waiters;
    made.blocked_for = to_time(each.blocked_for);
    return write_struct(name, made, "name");
  });
}

hf_status hf_list_check(const hf_list* list, size_t index, hf_check* check, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    const auto* checks = found_as<std::vector<health_check>>(list);
    if (checks == nullptr || index >= checks->size()) return no_such_row();
    const health_check& each = (*checks)[index];
    hf_check made{};
    made.name = to_text(each.name);
    made.detail = to_text(each.detail);
    made.remedy = to_text(each.remedy);
    made.state = static_cast<std::int32_t>(each.state);
    return write_struct(check, made, "check");
  });
}

hf_nanoseconds hf_list_blocked_for(const hf_list* list) {
  const auto* state = found_as<resource_state>(list);
  return state == nullptr ? -1 : to_time(state->blocked_for);
}

void hf_list_free(hf_list* list) { delete list; }
}

}  // namespace holdfast::c
