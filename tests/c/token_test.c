/* Leases that move between processes, by a token. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static hf_lease* adopt(const hf_client* client, const char* token) {
  hf_error error = {.size = sizeof error};
  hf_lease* lease = NULL;
  ANSWERS(HF_OK, hf_adopt(client, token, HF_Z, NULL, NULL, &lease, &error));
  return lease;
}

/* The token of a lock that was acquired and detached; it lives as long as *lease. */
static const char* detached(const hf_lock* lock, hf_lease** lease) {
  hf_error error = {.size = sizeof error};
  hf_text token = {0};
  *lease = take(lock);
  ANSWERS(HF_OK, hf_detach(*lease, &token, &error));
  CHECK(strlen(token.data) == token.length);
  return token.data;
}

static void a_lease_is_continued_with_its_fence_once(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:tokens");
  hf_client* other = open_client("memory:tokens");
  CHECK((hf_client_capabilities(client) & HF_CAN_DETACH) != 0);
  hf_lock* lock = new_mutex(client, "token/once");
  hf_lease* first = take(lock);
  const uint64_t fence = hf_lease_fence(first);
  int lost = -1;
  hf_text token = {0};
  ANSWERS(HF_OK, hf_lease_lost_fd(first, &lost, &error));
  ANSWERS(HF_INVALID, hf_detach(first, NULL, &error));
  CHECK(hf_lease_valid(first) == 1);
  ANSWERS(HF_OK, hf_detach(first, &token, &error));
  CHECK(hf_lease_valid(first) == 0);
  CHECK(hf_lease_fence(first) == 0);
  CHECK(hf_lease_count(first) == 0);
  ANSWERS(HF_NOT_HELD, hf_detach(first, &token, &error));
  ANSWERS(HF_NOT_HELD, hf_release(first, &error));
  ANSWERS(HF_NOT_HELD, hf_lease_wait_lost(first, LONG, NULL, &error)); /* given away, not lost */
  hf_lease* none = NULL;
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, NULL, NULL, &none, &error));
  hf_adopt_options how = {.size = sizeof how, .ttl = HF_SECONDS(60), .wait = LONG};
  hf_lease* adopted = NULL;
  ANSWERS(HF_OK, hf_adopt(other, token.data, token.length, &how, NULL, &adopted, &error));
  CHECK(hf_lease_fence(adopted) == fence);
  CHECK(hf_lease_valid(adopted) == 1);
  hf_lease_info info = {.size = sizeof info};
  ANSWERS(HF_OK, hf_lease_describe(adopted, 0, &info, &error));
  CHECK(info.ttl == HF_SECONDS(60));
  ANSWERS(HF_LOST, hf_adopt(client, token.data, token.length, NULL, NULL, &none, &error));
  CHECK(strstr(error.message, token.data) == NULL);
  ANSWERS(HF_LOST, hf_renew_token(client, token.data, token.length, 0, &error));
  ANSWERS(HF_LOST, hf_release_token(client, token.data, token.length, &error));
  CHECK(none == NULL);
  ANSWERS(HF_OK, hf_release(adopted, &error));
  hf_lease_free(adopted);
  hf_lease_free(first);
  hf_lock_free(lock);
  hf_client_free(other);
  hf_client_free(client);
}

static void another_process_continues_it(void) {
  hf_error error = {.size = sizeof error};
  char folder[] = "/tmp/holdfast-c-XXXXXX";
  char url[64];
  CHECK(mkdtemp(folder) != NULL);
  CHECK(snprintf(url, sizeof url, "sqlite:%s/locks.db", folder) < (int)sizeof url);
  hf_client* client = open_client(url);
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  const uint64_t fence = hf_lease_fence(lease);
  hf_text token = {0};
  ANSWERS(HF_OK, hf_detach(lease, &token, &error));
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    hf_lease* none = NULL;
    ANSWERS(HF_CANCELLED, hf_adopt(client, token.data, HF_Z, NULL, NULL, &none, &error));
    hf_client* own = open_client(url);
    hf_lease* adopted = adopt(own, token.data);
    CHECK(hf_lease_fence(adopted) == fence);
    ANSWERS(HF_OK, hf_release(adopted, &error));
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  hf_lease_free(lease);
  lease = take(lock); /* the child has released it */
  CHECK(hf_lease_fence(lease) > fence);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
  char command[64];
  CHECK(snprintf(command, sizeof command, "rm -r %s", folder) < (int)sizeof command);
  CHECK(system(command) == 0);
}

static void a_token_is_renewed_and_released(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:tokens");
  hf_lock* lock = new_mutex(client, "token/renewed");
  hf_lease* lease = NULL;
  const char* token = detached(lock, &lease);
  ANSWERS(HF_OK, hf_renew_token(client, token, HF_Z, HF_SECONDS(600), &error));
  hf_list* found = NULL;
  hf_claim holder = {.size = sizeof holder};
  ANSWERS(HF_OK, hf_inspect(client, "token/renewed", HF_Z, &found, &error));
  ANSWERS(HF_OK, hf_list_claim(found, 0, &holder, &error));
  CHECK(holder.remaining > HF_SECONDS(300));
  ANSWERS(HF_OK, hf_renew_token(client, token, HF_Z, 0, &error));
  ANSWERS(HF_INVALID, hf_renew_token(client, token, HF_Z, 1, &error));
  ANSWERS(HF_OK, hf_release_token(client, token, HF_Z, &error));
  ANSWERS(HF_LOST, hf_release_token(client, token, HF_Z, &error));
  hf_list_free(found);
  hf_lease_free(lease);
  lease = take(lock);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void all_of_it_without_blocking(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:tokens");
  hf_lock* lock = new_mutex(client, "token/async");
  hf_lease* first = take(lock);
  const uint64_t fence = hf_lease_fence(first);
  hf_call* detaches = NULL;
  hf_call* renews = NULL;
  hf_call* adopts = NULL;
  hf_call* releases = NULL;
  hf_text token = {0};
  ANSWERS(HF_OK, hf_detach_start(first, NULL, 0, &detaches, &error));
  CHECK(hf_lease_valid(first) == 0);
  hf_lease_free(first); /* the token belongs to the call */
  ANSWERS(HF_OK, hf_call_wait(detaches, LONG, &error));
  ANSWERS(HF_OK, hf_call_token(detaches, &token, &error));
  uint32_t number = 0;
  ANSWERS(HF_INVALID, hf_call_number(detaches, &number, &error));
  ANSWERS(HF_OK, hf_renew_token_start(client, token.data, token.length, 0, NULL, 0, &renews, &error));
  ANSWERS(HF_OK, hf_call_wait(renews, LONG, &error));
  ANSWERS(HF_INVALID, hf_call_token(renews, &token, &error));
  ANSWERS(HF_OK,
          hf_adopt_start(client, token.data, token.length, NULL, NULL, 0, &adopts, &error));
  ANSWERS(HF_OK, hf_call_wait(adopts, LONG, &error));
  hf_lease* adopted = NULL;
  ANSWERS(HF_OK, hf_call_lease(adopts, &adopted, &error));
  CHECK(hf_lease_fence(adopted) == fence);
  ANSWERS(HF_OK,
          hf_release_token_start(client, token.data, token.length, NULL, 0, &releases, &error));
  ANSWERS(HF_LOST, hf_call_wait(releases, LONG, &error));
  CHECK(hf_lease_valid(adopted) == 1);
  hf_call_free(detaches);
  hf_call_free(renews);
  hf_call_free(adopts);
  hf_call_free(releases);
  hf_lease_free(adopted);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void what_cannot_be_detached_goes_on(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:tokens");
  hf_lock* election = NULL;
  hf_lock* recursive = NULL;
  hf_lock* both = NULL;
  hf_lock* plain = new_mutex(client, "token/plain");
  ANSWERS(HF_OK,
          hf_election_new(client, "token/leader", HF_Z, "me", HF_Z, NULL, &election, &error));
  ANSWERS(HF_OK, hf_recursive_new(client, "token/again", HF_Z, NULL, &recursive, &error));
  const hf_part part = {.size = sizeof part, .lock = plain};
  ANSWERS(HF_OK, hf_multi_new(&part, 1, &both, &error));
  const hf_lock* locks[] = {election, recursive, both};
  for (size_t i = 0; i < 3; ++i) {
    hf_lease* lease = take(locks[i]);
    hf_text token = {0};
    hf_call* call = NULL;
    ANSWERS(HF_UNSUPPORTED, hf_detach(lease, &token, &error));
    CHECK(token.data == NULL);
    const hf_status started = hf_detach_start(lease, NULL, 0, &call, &error);
    CHECK(started == HF_UNSUPPORTED || hf_call_wait(call, LONG, &error) == HF_UNSUPPORTED);
    CHECK(hf_lease_valid(lease) == 1);
    ANSWERS(HF_OK, hf_release(lease, &error));
    hf_call_free(call);
    hf_lease_free(lease);
  }
  hf_lock_free(both);
  hf_lock_free(plain);
  hf_lock_free(recursive);
  hf_lock_free(election);
  hf_client_free(client);
}

static void bad_tokens_and_arguments_are_invalid(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:tokens");
  hf_lock* lock = new_mutex(client, "token/bad");
  hf_lease* lease = NULL;
  hf_lease* none = NULL;
  hf_call* call = NULL;
  const char* token = detached(lock, &lease);
  ANSWERS(HF_INVALID, hf_adopt(client, NULL, 0, NULL, NULL, &none, &error));
  ANSWERS(HF_INVALID, hf_adopt(NULL, token, HF_Z, NULL, NULL, &none, &error));
  ANSWERS(HF_INVALID, hf_adopt(client, token, HF_Z, NULL, NULL, NULL, &error));
  ANSWERS(HF_INVALID, hf_adopt(client, token, strlen(token) - 1, NULL, NULL, &none, &error));
  ANSWERS(HF_INVALID, hf_adopt_start(client, NULL, 0, NULL, NULL, 0, &call, &error));
  ANSWERS(HF_INVALID, hf_renew_token(client, "hft1_", HF_Z, 0, &error));
  ANSWERS(HF_INVALID, hf_release_token(client, "nonsense", HF_Z, &error));
  ANSWERS(HF_INVALID, hf_detach(NULL, NULL, &error));
  hf_adopt_options unset = {0};
  ANSWERS(HF_INVALID, hf_adopt(client, token, HF_Z, &unset, NULL, &none, &error));
  hf_client_options elsewhere = {.size = sizeof elsewhere,
                                 .name_space = {.data = "other", .length = 5}};
  hf_client* other = NULL;
  ANSWERS(HF_OK, hf_client_open("memory:tokens", HF_Z, &elsewhere, &other, &error));
  ANSWERS(HF_INVALID, hf_adopt(other, token, HF_Z, NULL, NULL, &none, &error));
  CHECK(none == NULL);
  CHECK(call == NULL);
  hf_lease* adopted = adopt(client, token); /* and it was not used up by any of that */
  hf_lease_free(adopted);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(other);
  hf_client_free(client);
}

struct contender {
  const hf_client* client;
  const char* token;
  hf_lease* lease;
};

static void* adopt_in_thread(void* argument) {
  struct contender* given = argument;
  const hf_status status = hf_adopt(given->client, given->token, HF_Z, NULL, NULL, &given->lease, NULL);
  CHECK(status == HF_OK || status == HF_LOST);
  return NULL;
}

static void of_two_threads_with_one_token_one_adopts(void) {
  hf_client* client = open_client("memory:tokens");
  hf_lock* lock = new_mutex(client, "token/raced");
  for (int round = 0; round < 50; ++round) {
    hf_lease* lease = NULL;
    struct contender one = {.client = client, .token = detached(lock, &lease)};
    struct contender two = one;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, adopt_in_thread, &one) == 0);
    adopt_in_thread(&two);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK((one.lease == NULL) != (two.lease == NULL));
    hf_lease_free(one.lease);
    hf_lease_free(two.lease);
    hf_lease_free(lease);
  }
  hf_lock_free(lock);
  hf_client_free(client);
}

#define TEST(name) \
  { #name, name }
const struct test token_tests[] = {TEST(a_lease_is_continued_with_its_fence_once),
                                   TEST(another_process_continues_it),
                                   TEST(a_token_is_renewed_and_released),
                                   TEST(all_of_it_without_blocking),
                                   TEST(what_cannot_be_detached_goes_on),
                                   TEST(bad_tokens_and_arguments_are_invalid),
                                   TEST(of_two_threads_with_one_token_one_adopts),
                                   {NULL, NULL}};
