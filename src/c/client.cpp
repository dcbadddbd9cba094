#include "c/client.hpp"

#include "c/list.hpp"

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

}  // namespace

extern "C" {

hf_status hf_client_open(const char* url, size_t url_length, const hf_client_options* options,
                         hf_client** client, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (url == nullptr) return missing("url");
    if (client == nullptr) return missing("client");
    const auto given = read_struct(options, "hf_client_options");
    if (!given) return tl::unexpected(given.error());
    auto opened = holdfast::client::open(text_of(url, url_length), client_options_of(*given));
    if (!opened) return tl::unexpected(std::move(opened.error()));
    *client = new hf_client{{}, *opened, std::make_shared<reentries>()};
    return {};
  });
}

hf_status hf_client_close(hf_client* client, hf_list** unconfirmed, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    std::vector<resource_summary> names;
    for (std::string& name : client->inside.close()) {
      names.push_back({.name = std::move(name), .holders = 1});
    }
    if (unconfirmed != nullptr) *unconfirmed = new hf_list{std::move(names)};
    return {};
  });
}

void hf_client_free(hf_client* client) { delete client; }

hf_status hf_client_ping(const hf_client* client, hf_nanoseconds timeout, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (auto wrong = check(client, "client"); !wrong) return wrong;
    return client->inside.ping(duration_of(timeout));
  });
}

hf_text hf_client_engine(const hf_client* client) {
  return client == nullptr ? hf_text{} : to_text(client->inside.caps().engine);
}

uint64_t hf_client_capabilities(const hf_client* client) {
  return client == nullptr ? 0 : bits_of(client->inside.caps());
}

hf_status hf_cancel_new(hf_cancel** cancel, hf_error* error) {
  return guarded(error, [&]() -> result<void> {
    if (cancel == nullptr) return missing("cancel");
    *cancel = new hf_cancel{};
    return {};
  });
}

void hf_cancel_fire(hf_cancel* cancel) {
  if (cancel != nullptr && !cancel->made_in.left()) cancel->source.request_stop();
}

void hf_cancel_free(hf_cancel* cancel) { delete cancel; }
}

}  // namespace holdfast::c
