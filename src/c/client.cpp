// The client, and its calls for operators.
#include "c/handles.hpp"

#include <holdfast/inspection.hpp>

#include <string>
#include <utility>
#include <variant>
#include <vector>

// What a call for operators found, with the strings that its structures point to.
struct hf_list {
  std::variant<std::vector<holdfast::resource_summary>, holdfast::resource_state,
               std::vector<holdfast::health_check>>
      found;
};

namespace holdfast::c {

std::optional<retry_policy> retry_of(const hf_retry& given) {
  if (given.attempts == 0 && given.first == 0 && given.limit == 0 && given.within == 0) {
    return std::nullopt;
  }
  retry_policy made;
  if (given.attempts != 0) made.attempts = given.attempts;
  if (given.first != 0) made.first = duration_of(given.first);
  if (given.limit != 0) made.limit = duration_of(given.limit);
  if (given.within != 0) made.within = duration_of(given.within);
  return made;
}

namespace {

client_options client_options_of(const hf_client_options& given) {
  client_options made;
  made.name_space = text_of(given.name_space);
  made.payload = text_of(given.payload);
  made.password = text_of(given.password);
  made.hand_over_locally = given.no_hand_over == 0;
  made.retry = retry_of(given.retry).value_or(retry_policy{});
  if (given.close_within != 0) made.close_within = duration_of(given.close_within);
  return made;
}

std::uint64_t bits_of(const capabilities& caps) {
  std::uint64_t bits = 0;
  const auto add = [&](bool can, int bit) { bits |= can ? static_cast<std::uint64_t>(bit) : 0U; };
  add(caps.expires, HF_CAN_EXPIRE);
  add(caps.pushes, HF_CAN_PUSH);
  add(caps.fair, HF_CAN_FAIR);
  add(caps.shared, HF_CAN_SHARED);
  add(caps.permits, HF_CAN_PERMITS);
  add(caps.supports_mode_change, HF_CAN_CHANGE_MODE);
  add(caps.latches, HF_CAN_LATCH);
  add(caps.supports_listing, HF_CAN_LIST);
  add(caps.reports_holders, HF_CAN_REPORT_HOLDERS);
  add(caps.reports_waiters, HF_CAN_REPORT_WAITERS);
  add(caps.revokes, HF_CAN_REVOKE);
  add(caps.supports_lock_delay, HF_CAN_LOCK_DELAY);
  add(caps.supports_namespaces, HF_CAN_NAMESPACES);
  add(caps.excludes_processes, HF_CAN_EXCLUDE_PROCESSES);
  add(caps.supports_detach, HF_CAN_DETACH);
  return bits;
}

// Asks the client; what it finds becomes a list.
template <class Ask>
hf_status list_of(const hf_client* client, hf_list** list, hf_error* error,
                  const Ask& ask) noexcept {
  return guarded(error, [&] {
    const hf_client& asked = use(client, "client");
    need(list, "list");
    *list = new hf_list{ask(asked.inside).value()};
  });
}

template <class Kind>
const Kind* found_as(const hf_list* list) {
  return list == nullptr ? nullptr : std::get_if<Kind>(&list->found);
}

// Throws invalid where there is none.
template <class Row>
const Row& row_of(const hf_list* list, std::size_t index) {
  const auto* rows = found_as<std::vector<Row>>(list);
  if (rows == nullptr || index >= rows->size()) mistake(errc::invalid, "no such row in this list");
  return (*rows)[index];
}

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

hf_status hf_client_open(const char* url, size_t url_length, const hf_client_options* options,
                         hf_client** client, hf_error* error) {
  return guarded(error, [&] {
    need(url, "url");
    need(client, "client");
    const auto given = read_struct(options, "hf_client_options");
    auto opened =
        holdfast::client::open(text_of(url, url_length), client_options_of(given)).value();
    *client = new hf_client{{}, opened, std::make_shared<reentries>()};
  });
}

hf_status hf_client_close(hf_client* client, hf_list** unconfirmed, hf_error* error) {
  return guarded(error, [&] {
    std::vector<resource_summary> names;
    for (std::string& name : use(client, "client").inside.close()) {
      names.push_back({.name = std::move(name), .holders = 1});
    }
    if (unconfirmed != nullptr) *unconfirmed = new hf_list{std::move(names)};
  });
}

void hf_client_free(hf_client* client) { delete client; }

hf_status hf_client_ping(const hf_client* client, hf_nanoseconds timeout, hf_error* error) {
  return guarded(error, [&] { return use(client, "client").inside.ping(duration_of(timeout)); });
}

hf_text hf_client_engine(const hf_client* client) {
  return client == nullptr ? hf_text{} : to_text(client->inside.caps().engine);
}

uint64_t hf_client_capabilities(const hf_client* client) {
  return client == nullptr ? 0 : bits_of(client->inside.caps());
}

hf_status hf_cancel_new(hf_cancel** cancel, hf_error* error) {
  return guarded(error, [&] {
    need(cancel, "cancel");
    *cancel = new hf_cancel{};
  });
}

void hf_cancel_fire(hf_cancel* cancel) {
  if (cancel != nullptr && !cancel->made_in.left()) cancel->source.request_stop();
}

void hf_cancel_free(hf_cancel* cancel) { delete cancel; }

hf_status hf_inspect(const hf_client* client, const char* name, size_t name_length, hf_list** list,
                     hf_error* error) {
  return list_of(client, list, error, [&](const auto& asked) {
    need(name, "name");
    return asked.inspect(std::string(text_of(name, name_length)));
  });
}

hf_status hf_names(const hf_client* client, const char* prefix, size_t prefix_length,
                   hf_list** list, hf_error* error) {
  return list_of(client, list, error, [&](const auto& asked) {
    return asked.list(std::string(text_of(prefix, prefix_length)));
  });
}

hf_status hf_doctor(const hf_client* client, hf_list** list, hf_error* error) {
  return list_of(client, list, error, [](const auto& asked) { return asked.probe(); });
}

hf_status hf_revoke(const hf_client* client, const char* name, size_t name_length, int how,
                    const char* claim, size_t claim_length, hf_list** list, hf_error* error) {
  hf_list* unwanted = nullptr;
  const hf_status status =
      list_of(client, list != nullptr ? list : &unwanted, error,
              [&](holdfast::client asked) -> result<resource_state> {
                need(name, "name");
                if (how != HF_REVOKE_FORCE && how != HF_REVOKE_SAFE) {
                  mistake(errc::invalid, "no such way to revoke");
                }
                auto holders = asked.revoke(std::string(text_of(name, name_length)),
                                            static_cast<revocation>(how),
                                            std::string(text_of(claim, claim_length)));
                return resource_state{.holders = std::move(holders).value(), .waiters = {}};
              });
  delete unwanted;
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
  return guarded(error, [&] {
    const auto* state = found_as<resource_state>(list);
    if (state == nullptr || index >= hf_list_count(list)) {
      mistake(errc::invalid, "no such row in this list");
    }
    const std::size_t held = state->holders.size();
    write_struct(
        claim,
        index < held ? claim_of(state->holders[index]) : claim_of(state->waiters[index - held]),
        "claim");
  });
}

hf_status hf_list_name(const hf_list* list, size_t index, hf_name* name, hf_error* error) {
  return guarded(error, [&] {
    const auto& each = row_of<resource_summary>(list, index);
    hf_name made{};
    made.name = to_text(each.name);
    made.holders = each.holders;
    made.waiters = each.waiters;
    made.blocked_for = to_time(each.blocked_for);
    write_struct(name, made, "name");
  });
}

hf_status hf_list_check(const hf_list* list, size_t index, hf_check* check, hf_error* error) {
  return guarded(error, [&] {
    const auto& each = row_of<health_check>(list, index);
    hf_check made{};
    made.name = to_text(each.name);
    made.detail = to_text(each.detail);
    made.remedy = to_text(each.remedy);
    made.state = static_cast<std::int32_t>(each.state);
    write_struct(check, made, "check");
  });
}

hf_nanoseconds hf_list_blocked_for(const hf_list* list) {
  const auto* state = found_as<resource_state>(list);
  return state == nullptr ? -1 : to_time(state->blocked_for);
}

void hf_list_free(hf_list* list) { delete list; }
}

}  // namespace holdfast::c
