#include "check.h"

#include <dirent.h>

static void an_answer_makes_the_descriptor_of_its_call_readable(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* first = take(lock);
  hf_call* call = NULL;
  int fd = -1;
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &call, &error));
  ANSWERS(HF_OK, hf_call_fd(call, &fd, &error));
  CHECK(!is_readable(fd));
  hf_lease* second = NULL;
  ANSWERS(HF_PENDING, hf_call_lease(call, &second, &error));
  ANSWERS(HF_PENDING, hf_call_wait(call, HF_MILLISECONDS(1), &error));
  ANSWERS(HF_OK, hf_release(first, &error));
  wait_for_fd(fd);
  ANSWERS(HF_OK, hf_call_result(call, &error));
  ANSWERS(HF_OK, hf_call_lease(call, &second, &error));
  CHECK(hf_lease_valid(second) == 1);
  hf_lease* twice = NULL;
  ANSWERS(HF_NOT_HELD, hf_call_lease(call, &twice, &error));
  uint32_t number = 0;
  ANSWERS(HF_INVALID, hf_call_number(call, &number, &error));
  hf_call_free(call);
  hf_lease_free(first);
  hf_lease_free(second);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_freed_call_gives_its_grant_back(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_call* call = NULL;
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &call, &error));
  ANSWERS(HF_OK, hf_call_wait(call, LONG, &error));
  hf_call_free(call); /* granted, and not taken */
  hf_lease* lease = take(lock);
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &call, &error));
  hf_call_free(call); /* still waiting */
  ANSWERS(HF_OK, hf_release(lease, &error));
  hf_lease_free(lease);
  lease = take(lock);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_cancelled_call_answers_cancelled(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_call* call = NULL;
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, NULL, 0, &call, &error));
  hf_call_cancel(call);
  ANSWERS(HF_CANCELLED, hf_call_wait(call, LONG, &error));
  hf_call_free(call);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

enum { CALLS = 1000 };

/* A thousand waiters for one lock, one descriptor, no thread: each gets the lock in its turn. */
static void one_queue_serves_a_thousand_calls(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_queue* queue = NULL;
  static hf_call* calls[CALLS];
  ANSWERS(HF_OK, hf_queue_new(&queue, &error));
  for (uint64_t each = 0; each < CALLS; ++each) {
    ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, queue, each, &calls[each], &error));
  }
  uint64_t fence = 0;
  for (size_t served = 0; served < CALLS;) {
    uint64_t tags[16];
    size_t count = 0;
    wait_for_fd(hf_queue_fd(queue));
    if (hf_queue_next(queue, tags, 16, &count, &error) == HF_PENDING) continue;
    for (size_t each = 0; each < count; ++each, ++served) {
      hf_lease* lease = NULL;
      CHECK(tags[each] < CALLS && calls[tags[each]] != NULL);
      ANSWERS(HF_OK, hf_call_lease(calls[tags[each]], &lease, &error));
      CHECK(hf_lease_fence(lease) > fence);
      fence = hf_lease_fence(lease);
      hf_lease_free(lease);
      hf_call_free(calls[tags[each]]);
      calls[tags[each]] = NULL;
    }
  }
  uint64_t tag = 0;
  size_t none = 1;
  ANSWERS(HF_PENDING, hf_queue_next(queue, &tag, 1, &none, &error));
  CHECK(none == 0 && !is_readable(hf_queue_fd(queue)));
  hf_queue_free(queue);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_freed_call_does_not_come_out_of_the_queue(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_queue* queue = NULL;
  hf_call* call = NULL;
  ANSWERS(HF_OK, hf_queue_new(&queue, &error));
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, queue, 1, &call, &error));
  wait_for_fd(hf_queue_fd(queue));
  hf_call_free(call);
  hf_lease* lease = take(lock); /* its grant was released at once */
  uint64_t tag = 0;
  size_t count = 0;
  ANSWERS(HF_PENDING, hf_queue_next(queue, &tag, 1, &count, &error));
  hf_lease_free(lease);
  hf_queue_free(queue);
  hf_lock_free(lock);
  hf_client_free(client);
}

static int open_descriptors(void) {
  DIR* const all = opendir("/proc/self/fd");
  int count = 0;
  CHECK(all != NULL);
  while (readdir(all) != NULL) ++count;
  closedir(all);
  return count;
}

/* The answer may come before or after, and its call may be freed before or after. */
static void a_freed_queue_closes_its_descriptor_though_an_answer_was_not_taken(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_lease_free(lease);
  const int before = open_descriptors();
  for (int each = 0; each < 40; ++each) {
    const int answered_first = each % 2 == 0;
    const int call_first = each % 4 < 2;
    hf_queue* queue = NULL;
    hf_call* call = NULL;
    lease = take(lock);
    ANSWERS(HF_OK, hf_queue_new(&queue, &error));
    ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, NULL, queue, 1, &call, &error));
    if (answered_first) {
      ANSWERS(HF_OK, hf_release(lease, &error));
      wait_for_fd(hf_queue_fd(queue));
    }
    if (call_first) hf_call_free(call);
    hf_queue_free(queue);
    if (!answered_first) ANSWERS(HF_OK, hf_release(lease, &error));
    if (!call_first) {
      ANSWERS(HF_OK, hf_call_wait(call, LONG, &error));
      hf_call_free(call);
    }
    hf_lease_free(lease);
    lease = take(lock); /* what was granted has been given back */
    hf_lease_free(lease);
  }
  hf_queue_free(NULL);
  /* Another thread may still be giving its answer, or closing what an earlier test has left. */
  for (int left = 60000; open_descriptors() > before && left > 0; --left) poll(NULL, 0, 1);
  CHECK(open_descriptors() <= before);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void a_loss_is_announced_by_descriptor_call_and_wait(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = new_mutex(client, "a");
  hf_lease* lease = take(lock);
  hf_call* lost = NULL;
  int fd = -1;
  ANSWERS(HF_OK, hf_lost_start(lease, NULL, 0, &lost, &error));
  ANSWERS(HF_OK, hf_lease_lost_fd(lease, &fd, &error));
  ANSWERS(HF_TIMED_OUT, hf_lease_wait_lost(lease, HF_MILLISECONDS(1), NULL, &error));
  CHECK(!is_readable(fd));
  ANSWERS(HF_OK, hf_revoke(client, "a", HF_Z, HF_REVOKE_FORCE, NULL, 0, NULL, &error));
  wait_for_fd(fd);
  ANSWERS(HF_OK, hf_call_wait(lost, LONG, &error));
  ANSWERS(HF_OK, hf_lease_wait_lost(lease, LONG, NULL, &error));
  CHECK(hf_lease_valid(lease) == 0);
  ANSWERS(HF_LOST, hf_release(lease, &error));
  hf_call_free(lost);
  hf_lease_free(lease);
  lease = take(lock);
  ANSWERS(HF_OK, hf_lost_start(lease, NULL, 0, &lost, &error));
  hf_call* release = NULL;
  ANSWERS(HF_OK, hf_release_start(lease, NULL, 0, &release, &error));
  ANSWERS(HF_OK, hf_call_wait(release, LONG, &error));
  ANSWERS(HF_NOT_HELD, hf_call_wait(lost, LONG, &error)); /* released, not lost */
  hf_call_free(release);
  hf_call_free(lost);
  hf_lease_free(lease);
  hf_lock_free(lock);
  hf_client_free(client);
}

static void latches_count_down_to_zero(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_latch* latch = NULL;
  ANSWERS(HF_OK, hf_latch_new(client, "start", HF_Z, 0, &latch, &error));
  uint32_t count = 9;
  ANSWERS(HF_NOT_HELD, hf_latch_count(latch, &count, &error));
  hf_call* waiting = NULL;
  ANSWERS(HF_OK, hf_latch_wait_start(latch, HF_FOREVER, NULL, 0, &waiting, &error));
  ANSWERS(HF_OK, hf_latch_set(latch, 3, &error));
  ANSWERS(HF_CONFLICT, hf_latch_set(latch, 3, &error));
  ANSWERS(HF_TIMED_OUT, hf_latch_wait(latch, 0, NULL, &error));
  ANSWERS(HF_OK, hf_latch_count_down(latch, 1, "job-1", HF_Z, &count, &error));
  ANSWERS(HF_OK, hf_latch_count_down(latch, 1, "job-1", HF_Z, &count, &error));
  CHECK(count == 2); /* the same id counts once */
  hf_call* call = NULL;
  ANSWERS(HF_OK, hf_latch_count_down_start(latch, 1, NULL, 0, NULL, 0, &call, &error));
  ANSWERS(HF_OK, hf_call_wait(call, LONG, &error));
  ANSWERS(HF_OK, hf_call_number(call, &count, &error));
  CHECK(count == 1);
  hf_call_free(call);
  ANSWERS(HF_PENDING, hf_call_result(waiting, &error));
  ANSWERS(HF_OK, hf_latch_count_down(latch, 1, NULL, 0, NULL, &error));
  ANSWERS(HF_OK, hf_call_wait(waiting, LONG, &error));
  ANSWERS(HF_OK, hf_latch_wait(latch, LONG, NULL, &error));
  hf_call_free(waiting);
  hf_latch_free(latch);
  hf_client_free(client);
}

static void a_recursive_call_enters_again_at_once(void) {
  hf_error error = {.size = sizeof error};
  hf_client* client = open_client("memory:");
  hf_lock* lock = NULL;
  hf_acquire_options mine = {.size = sizeof mine, .owner = 1};
  hf_call* calls[2] = {NULL, NULL};
  hf_lease* leases[2] = {NULL, NULL};
  ANSWERS(HF_OK, hf_recursive_new(client, "a", 1, NULL, &lock, &error));
  for (int each = 0; each < 2; ++each) {
    ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, &mine, NULL, 0, &calls[each], &error));
    ANSWERS(HF_OK, hf_call_wait(calls[each], LONG, &error));
    ANSWERS(HF_OK, hf_call_lease(calls[each], &leases[each], &error));
    hf_call_free(calls[each]);
  }
  CHECK(hf_lease_fence(leases[0]) == hf_lease_fence(leases[1]));
  /* An entry that nobody takes is withdrawn. */
  ANSWERS(HF_OK, hf_acquire_start(lock, HF_FOREVER, &mine, NULL, 0, &calls[0], &error));
  hf_call_free(calls[0]);
  hf_lease_free(leases[0]);
  hf_lease_free(leases[1]);
  hf_lease* other = take(lock);
  hf_lease_free(other);
  hf_lock_free(lock);
  hf_client_free(client);
}

#define TEST(name) \
  { #name, name }
const struct test async_tests[] = {TEST(an_answer_makes_the_descriptor_of_its_call_readable),
                                   TEST(a_freed_call_gives_its_grant_back),
                                   TEST(a_cancelled_call_answers_cancelled),
                                   TEST(one_queue_serves_a_thousand_calls),
                                   TEST(a_freed_call_does_not_come_out_of_the_queue),
                                   TEST(a_freed_queue_closes_its_descriptor_though_an_answer_was_not_taken),
                                   TEST(a_loss_is_announced_by_descriptor_call_and_wait),
                                   TEST(latches_count_down_to_zero),
                                   TEST(a_recursive_call_enters_again_at_once),
                                   {NULL, NULL}};
