#include "check.h"

static void inspect_shows_holders_and_waiters(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = NULL;
  hf_client_options options = {.size = sizeof options, .payload = {"a test", 6}};
  ANSWERS(HF_OK, hf_client_open("memory:", HF_Z, &options, &client, &error));
  CHECK(strcmp(hf_client_engine(client).data, "memory") == 0);
  CHECK((hf_client_capabilities(client) & HF_CAN_FAIR) != 0);
  ANSWERS(HF_OK, hf_client_ping(client, LONG, &error));
  hf_lock* lock = new_fair_mutex(client, "stock/42");
  hf_lease* lease = take(lock);
  hf_call* waiting = NULL;
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &waiting, &error));
  hf_list* list = NULL;
  for (size_t rows = 0; rows < 2; rows = hf_list_count(list)) {
    hf_list_free(list);
    ANSWERS(HF_OK, hf_inspect(client, "stock/42", HF_Z, &list, &error));
  }
  hf_claim claim = {.size = sizeof claim};
  ANSWERS(HF_OK, hf_list_claim(list, 0, &claim, &error));
  CHECK(claim.waiting == 0 && claim.fence == hf_lease_fence(lease) && claim.mode == HF_EXCLUSIVE);
  CHECK(strcmp(claim.payload.data, "a test") == 0);
  ANSWERS(HF_OK, hf_list_claim(list, 1, &claim, &error));
  CHECK(claim.waiting == 1);
  ANSWERS(HF_INVALID, hf_list_claim(list, 2, &claim, &error));
  hf_name name = {.size = sizeof name};
  ANSWERS(HF_INVALID, hf_list_name(list, 0, &name, &error));
  CHECK(hf_list_blocked_for(list) == -1);
  hf_list_free(list);
  ANSWERS(HF_OK, hf_names(client, "stock/", HF_Z, &list, &error));
  CHECK(hf_list_count(list) == 1);
  ANSWERS(HF_OK, hf_list_name(list, 0, &name, &error));
  CHECK(strcmp(name.name.data, "stock/42") == 0 && name.holders == 1 && name.waiters == 1);
  hf_list_free(list);
  hf_call_free(waiting);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void the_doctor_answers_with_checks(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_list* list = NULL;
  ANSWERS(HF_OK, hf_doctor(client, &list, &error));
  for (size_t each = 0; each < hf_list_count(list); ++each) {
    hf_check check = {.size = sizeof check};
    ANSWERS(HF_OK, hf_list_check(list, each, &check, &error));
    CHECK(check.name.length > 0 && check.state >= HF_CHECK_OK && check.state <= HF_CHECK_FAIL);
  }
  hf_list_free(list);
  hf_client_free(client);
}

static void revoking_says_who_held(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_list* holders = NULL;
  ANSWERS(HF_INVALID, hf_revoke(client, "a", HF_Z, 7, NULL, 0, &holders, &error));
  ANSWERS(HF_OK, hf_revoke(client, "a", HF_Z, HF_REVOKE_FORCE, NULL, 0, &holders, &error));
  CHECK(hf_list_count(holders) == 1);
  hf_claim claim = {.size = sizeof claim};
  ANSWERS(HF_OK, hf_list_claim(holders, 0, &claim, &error));
  CHECK(claim.claim.length > 0);
  hf_list_free(holders);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

/* The next event of this kind. */
static hf_event next_event(hf_watch* watch, int kind) {
  hf_error error = {.size = sizeof error};
  hf_event event = {.size = sizeof event};
  for (;;) {
    wait_for_fd(hf_watch_fd(watch));
    const hf_status status = hf_watch_next(watch, &event, &error);
    CHECK(status == HF_OK || status == HF_PENDING);
    if (status == HF_OK && event.kind == kind) return event;
  }
}

static void a_watch_sees_what_happens_to_a_name(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_watch* watch = NULL;
  ANSWERS(HF_OK, hf_observe(client, "a", HF_Z, &watch, &error));
  hf_lease* lease = take(lock);
  hf_event granted = next_event(watch, HF_EVENT_GRANTED);
  CHECK(strcmp(granted.name.data, "a") == 0 && granted.fence == hf_lease_fence(lease));
  ANSWERS(HF_OK, hf_release(lease, &error));
  next_event(watch, HF_EVENT_RELEASED);
  hf_watch_free(watch);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void an_election_tells_who_leads(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* election = NULL;
  hf_watch* watch = NULL;
  hf_call* asked = NULL;
  hf_leader leader = {.size = sizeof leader};
  ANSWERS(HF_OK, hf_election_new(client, "boss", HF_Z, "host-7", HF_Z, NULL, &election, &error));
  ANSWERS(HF_OK, hf_leader_watch(election, &watch, &error));
  next_event(watch, HF_EVENT_NO_LEADER);
  hf_lease* lease = take(election);
  hf_event elected = next_event(watch, HF_EVENT_LEADER);
  CHECK(strcmp(elected.payload.data, "host-7") == 0 && elected.fence == hf_lease_fence(lease));
  ANSWERS(HF_OK, hf_leader_start(election, NULL, 0, &asked, &error));
  ANSWERS(HF_OK, hf_call_wait(asked, LONG, &error));
  ANSWERS(HF_OK, hf_call_leader(asked, &leader, &error));
  CHECK(leader.present == 1 && strcmp(leader.id.data, "host-7") == 0);
  hf_call_free(asked);
  ANSWERS(HF_OK, hf_release(lease, &error));
  next_event(watch, HF_EVENT_NO_LEADER);
  hf_watch_free(watch);
  hf_lease_free(lease);
  hf_lock_free(election);
  hf_client_free(client);
}

#define TEST(name) \
  { #name, name }
const struct test operator_tests[] = {TEST(inspect_shows_holders_and_waiters),
                                      TEST(the_doctor_answers_with_checks),
                                      TEST(revoking_says_who_held),
                                      TEST(a_watch_sees_what_happens_to_a_name),
                                      TEST(an_election_tells_who_leads),
                                      {NULL, NULL}};
