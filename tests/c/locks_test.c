#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_mutex_excludes_and_its_fence_grows(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* first = take(lock);
  const uint64_t fence = hf_lease_fence(first);
  CHECK(fence > 0);
  CHECK(hf_lease_valid(first) == 1);
  CHECK(hf_lease_valid_for(first) > 0);
  hf_lease* second = NULL;
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, NULL, NULL, &second, &error));
  CHECK(second == NULL);
  CHECK(error.code == HF_BUSY);
  CHECK(strncmp(error.message, "busy", 4) == 0);
  ANSWERS(HF_TIMED_OUT, hf_acquire(lock, HF_MILLISECONDS(1), NULL, NULL, &second, &error));
  ANSWERS(HF_OK, hf_release(first, &error));
  CHECK(error.message[0] == '\0');
  CHECK(hf_lease_valid(first) == 0);
  CHECK(hf_lease_fence(first) == 0);
  ANSWERS(HF_NOT_HELD, hf_release(first, &error));
  second = take(lock);
  CHECK(hf_lease_fence(second) > fence);
  hf_lease_free(second); /* releases */
  second = take(lock);
  hf_lease_free(second);
  hf_lease_free(first);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void handles_may_be_freed_in_any_order(void) {
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_client_free(client);
  CHECK(hf_lease_valid(lease) == 1);
  hf_lock_free(lock); /* the last of the client: it is closed */
  CHECK(hf_lease_valid(lease) == 0);
  hf_lease_free(lease);
  hf_client_free(NULL);
  hf_lock_free(NULL);
  hf_lease_free(NULL);
  hf_latch_free(NULL);
  hf_call_free(NULL);
  hf_queue_free(NULL);
  hf_cancel_free(NULL);
  hf_list_free(NULL);
  hf_watch_free(NULL);
}

static void bad_arguments_are_invalid_and_crash_nothing(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = NULL;
  hf_lock* lock = NULL;
  hf_lease* lease = NULL;
  ANSWERS(HF_INVALID, hf_client_open(NULL, 0, NULL, &client, &error));
  ANSWERS(HF_INVALID, hf_client_open("nonsense", HF_Z, NULL, &client, NULL));
  ANSWERS(HF_INVALID, hf_client_open("memory:", HF_Z, NULL, NULL, &error));
  ANSWERS(HF_INVALID, hf_acquire(NULL, 0, NULL, NULL, &lease, &error));
  CHECK(strcmp(error.message, "invalid (lock is missing)") == 0);
  client = open_client("memory:");
  ANSWERS(HF_INVALID, hf_mutex_new(client, "", 0, NULL, &lock, &error));
  hf_lock_options unset = {0};
  ANSWERS(HF_INVALID, hf_mutex_new(client, "a", 1, &unset, &lock, &error));
  CHECK(strstr(error.message, "size") != NULL);
  hf_lock_options short_ttl = {.size = sizeof short_ttl, .ttl = 1};
  ANSWERS(HF_INVALID, hf_mutex_new(client, "a", 1, &short_ttl, &lock, &error));
  ANSWERS(HF_INVALID, hf_semaphore_new(client, "a", 1, 0, NULL, &lock, &error));
  CHECK(lock == NULL);
  lock = new_mutex(client, "a");
  hf_acquire_options reading = {.size = sizeof reading, .shared = 1};
  ANSWERS(HF_INVALID, hf_acquire(lock, 0, &reading, NULL, &lease, &error));
  uint32_t permits = 0;
  ANSWERS(HF_INVALID, hf_available(lock, &permits, &error));
  CHECK(lease == NULL);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void structures_of_other_versions_fit(void) {
  struct {
    hf_lock_options known;
    uint64_t later;
  } newer = {.known = {.size = sizeof newer}};
  struct {
    size_t size;
    hf_status code;
    int32_t unsent;
    char message[8];
  } shorter = {.size = sizeof shorter};
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  ANSWERS(HF_OK, hf_mutex_new(client, "a", 1, &newer.known, &lock, &error));
  hf_lock_free(lock);
  lock = NULL;
  newer.later = 1;
  ANSWERS(HF_INVALID, hf_mutex_new(client, "a", 1, &newer.known, &lock, (hf_error*)(void*)&shorter));
  CHECK(shorter.code == HF_INVALID);
  CHECK(strcmp(shorter.message, "invalid") == 0); /* what fits, and a terminating zero */
  hf_client_free(client);
}

static void a_lock_has_a_payload_and_a_longest_hold(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  hf_lock_options options = {.size = sizeof options,
                             .max_hold = HF_MILLISECONDS(100),
                             .payload = {.data = "import of May", .length = 13}};
  ANSWERS(HF_OK, hf_mutex_new(client, "a", 1, &options, &lock, &error));
  hf_lease* lease = take(lock);
  hf_list* found = NULL;
  ANSWERS(HF_OK, hf_inspect(client, "a", 1, &found, &error));
  hf_claim holder = {.size = sizeof holder};
  ANSWERS(HF_OK, hf_list_claim(found, 0, &holder, &error));
  CHECK(strcmp(holder.payload.data, "import of May") == 0);
  ANSWERS(HF_OK, hf_lease_wait_lost(lease, HF_SECONDS(60), NULL, &error));
  CHECK(!hf_lease_valid(lease));
  hf_list_free(found);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void names_are_bytes_with_a_length(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* one = NULL;
  hf_lock* other = NULL;
  ANSWERS(HF_OK, hf_mutex_new(client, "stock/42", 7, NULL, &one, &error));
  ANSWERS(HF_OK, hf_mutex_new(client, "stock/4", HF_Z, NULL, &other, &error));
  hf_lease* lease = take(one);
  hf_lease* none = NULL;
  ANSWERS(HF_BUSY, hf_acquire(other, 0, NULL, NULL, &none, &error));
  hf_lease_info info = {.size = sizeof info};
  ANSWERS(HF_OK, hf_lease_describe(lease, 0, &info, &error));
  CHECK(info.name.length == 7 && strcmp(info.name.data, "stock/4") == 0);
  CHECK(info.claim.length > 0 && info.fence == hf_lease_fence(lease) && info.valid == 1);
  CHECK(info.ttl == HF_SECONDS(30));
  ANSWERS(HF_INVALID, hf_lease_describe(lease, 1, &info, &error));
  hf_lease_free(lease);
  hf_lock_free(one);
  hf_lock_free(other);
  hf_client_free(client);
}

static void a_recursive_lock_is_entered_again_by_its_owner(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  hf_lock* same = NULL;
  ANSWERS(HF_OK, hf_recursive_new(client, "a", 1, NULL, &lock, &error));
  ANSWERS(HF_OK, hf_recursive_new(client, "a", 1, NULL, &same, &error));
  hf_lease* outer = take(lock);
  hf_lease* inner = take(same);
  CHECK(hf_lease_fence(outer) == hf_lease_fence(inner));
  hf_acquire_options stranger = {.size = sizeof stranger, .owner = 7};
  hf_lease* none = NULL;
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, &stranger, NULL, &none, &error));
  ANSWERS(HF_OK, hf_release(outer, &error));
  CHECK(hf_lease_valid(outer) == 0 && hf_lease_valid(inner) == 1);
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, &stranger, NULL, &none, &error));
  ANSWERS(HF_OK, hf_release(inner, &error));
  ANSWERS(HF_OK, hf_acquire(lock, 0, &stranger, NULL, &none, &error));
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, NULL, NULL, &inner, &error));
  hf_lease_free(none);
  hf_lease_free(outer);
  hf_lease_free(inner);
  hf_lock_free(lock);
  hf_lock_free(same);
  hf_client_free(client);
}

static void readers_share_and_the_sole_reader_becomes_the_writer(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  ANSWERS(HF_OK, hf_shared_new(client, "a", 1, NULL, &lock, &error));
  hf_acquire_options reading = {.size = sizeof reading, .shared = 1};
  hf_lease* one = NULL;
  hf_lease* other = NULL;
  hf_lease* writer = NULL;
  ANSWERS(HF_OK, hf_acquire(lock, LONG, &reading, NULL, &one, &error));
  ANSWERS(HF_OK, hf_acquire(lock, LONG, &reading, NULL, &other, &error));
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, NULL, NULL, &writer, &error));
  ANSWERS(HF_WOULD_DEADLOCK, hf_upgrade(lock, one, &error));
  hf_lease_free(other);
  ANSWERS(HF_OK, hf_acquire(lock, LONG, &reading, NULL, &other, &error));
  ANSWERS(HF_OK, hf_release(other, &error));
  const uint64_t before = hf_lease_fence(one);
  ANSWERS(HF_OK, hf_upgrade(lock, one, &error));
  CHECK(hf_lease_fence(one) > before);
  hf_lease_free(other);
  other = NULL;
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, &reading, NULL, &other, &error));
  ANSWERS(HF_OK, hf_downgrade(lock, one, &error));
  ANSWERS(HF_OK, hf_acquire(lock, LONG, &reading, NULL, &other, &error));
  hf_lease_free(one);
  hf_lease_free(other);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_semaphore_gives_its_permits_all_or_nothing(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  ANSWERS(HF_OK, hf_semaphore_new(client, "a", 1, 3, NULL, &lock, &error));
  hf_acquire_options two = {.size = sizeof two, .permits = 2};
  hf_lease* pair = NULL;
  hf_lease* more = NULL;
  uint32_t left = 0;
  ANSWERS(HF_OK, hf_acquire(lock, LONG, &two, NULL, &pair, &error));
  ANSWERS(HF_OK, hf_available(lock, &left, &error));
  CHECK(left == 1);
  ANSWERS(HF_BUSY, hf_acquire(lock, 0, &two, NULL, &more, &error));
  hf_lease* last = take(lock);
  hf_lease_free(last);
  hf_lease_free(pair);
  ANSWERS(HF_OK, hf_resize(lock, 5, &error));
  ANSWERS(HF_INVALID, hf_resize(lock, 0, &error));
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_multi_lock_takes_all_or_nothing(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* from = new_mutex(client, "from");
  hf_lock* permits = NULL;
  hf_lock* both = NULL;
  ANSWERS(HF_OK, hf_semaphore_new(client, "permits", HF_Z, 2, NULL, &permits, &error));
  hf_part parts[] = {{.size = sizeof parts[0], .lock = from},
                     {.size = sizeof parts[0], .lock = permits, .permits = 2}};
  ANSWERS(HF_INVALID, hf_multi_new(parts, 0, &both, &error));
  ANSWERS(HF_OK, hf_multi_new(parts, 2, &both, &error));
  hf_lease* leases = take(both);
  CHECK(hf_lease_count(leases) == 2);
  hf_lease_info info = {.size = sizeof info};
  ANSWERS(HF_OK, hf_lease_describe(leases, 1, &info, &error));
  CHECK(strcmp(info.name.data, "permits") == 0);
  hf_lease* none = NULL;
  ANSWERS(HF_BUSY, hf_acquire(permits, 0, NULL, NULL, &none, &error));
  int lost = -1;
  ANSWERS(HF_OK, hf_lease_lost_fd(leases, &lost, &error));
  CHECK(!is_readable(lost));
  ANSWERS(HF_OK, hf_revoke(client, "permits", HF_Z, HF_REVOKE_FORCE, NULL, 0, NULL, &error));
  wait_for_fd(lost); /* the loss of one is the loss of all */
  ANSWERS(HF_OK, hf_lease_wait_lost(leases, LONG, NULL, &error));
  ANSWERS(HF_LOST, hf_release(leases, &error));
  CHECK(hf_lease_count(leases) == 0);
  hf_lease_free(leases);
  hf_lock_free(both);
  hf_lock_free(from);
  hf_lock_free(permits);
  hf_client_free(client);
}

struct waiting {
  hf_lock* lock;
  hf_cancel* cancel;
  hf_status answer;
};

static void* wait_in_thread(void* argument) {
  struct waiting* given = argument;
  hf_lease* lease = NULL;
  given->answer = hf_acquire(given->lock, HF_FOREVER, NULL, given->cancel, &lease, NULL);
  hf_lease_free(lease);
  return NULL;
}

static void a_blocking_wait_ends_by_a_cancel_handle(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_fair_mutex(client, "a");
  hf_lease* lease = take(lock);
  struct waiting given = {.lock = lock, .answer = HF_PENDING};
  ANSWERS(HF_OK, hf_cancel_new(&given.cancel, &error));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_in_thread, &given) == 0);
  hf_list* list = NULL;
  for (size_t waiting = 0; waiting < 2; waiting = hf_list_count(list)) {
    hf_list_free(list);
    ANSWERS(HF_OK, hf_inspect(client, "a", HF_Z, &list, &error));
  }
  hf_list_free(list);
  hf_cancel_fire(given.cancel);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(given.answer == HF_CANCELLED);
  hf_cancel_free(given.cancel);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void closing_answers_waiters_and_later_calls(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_call* call = NULL;
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &call, &error));
  hf_list* unconfirmed = NULL;
  ANSWERS(HF_OK, hf_client_close(client, &unconfirmed, &error));
  CHECK(hf_list_count(unconfirmed) == 0);
  ANSWERS(HF_CANCELLED, hf_call_wait(call, LONG, &error));
  CHECK(hf_lease_valid(lease) == 0);
  hf_lease* none = NULL;
  ANSWERS(HF_CANCELLED, hf_acquire(lock, 0, NULL, NULL, &none, &error));
  hf_list_free(unconfirmed);
  hf_call_free(call);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static int use_in_child(hf_client* client, hf_lock* lock, hf_lease* lease) {
  hf_error error = {.size = sizeof error};
  hf_lease* none = NULL;
  ANSWERS(HF_CANCELLED, hf_acquire(lock, 0, NULL, NULL, &none, &error));
  CHECK(strstr(error.message, "child") != NULL);
  CHECK(hf_lease_valid(lease) == 0 && hf_lease_fence(lease) == 0);
  ANSWERS(HF_CANCELLED, hf_release(lease, &error));
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
  hf_client* own = open_client("memory:");
  hf_client_free(own);
  return 0;
}

static void in_a_forked_child_the_handles_are_inert(void) {
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) _exit(use_in_child(client, lock, lease));
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(hf_lease_valid(lease) == 1);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

#define TEST(name) \
  { #name, name }
const struct test lock_tests[] = {TEST(a_mutex_excludes_and_its_fence_grows),
                                  TEST(handles_may_be_freed_in_any_order),
                                  TEST(bad_arguments_are_invalid_and_crash_nothing),
                                  TEST(structures_of_other_versions_fit),
                                  TEST(a_lock_has_a_payload_and_a_longest_hold),
                                  TEST(names_are_bytes_with_a_length),
                                  TEST(a_recursive_lock_is_entered_again_by_its_owner),
                                  TEST(readers_share_and_the_sole_reader_becomes_the_writer),
                                  TEST(a_semaphore_gives_its_permits_all_or_nothing),
                                  TEST(a_multi_lock_takes_all_or_nothing),
                                  TEST(a_blocking_wait_ends_by_a_cancel_handle),
                                  TEST(closing_answers_waiters_and_later_calls),
                                  TEST(in_a_forked_child_the_handles_are_inert),
                                  {NULL, NULL}};
