/* What the tests in C share: a check that ends the program, and a client of an engine. */
#ifndef HOLDFAST_TESTS_C_CHECK_H
#define HOLDFAST_TESTS_C_CHECK_H

#include <holdfast/holdfast.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) {                                                               \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);       \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

/* The call must answer `status`. `error` is the caller's hf_error. */
#define ANSWERS(status, call)                                                         \
  do {                                                                                \
    const hf_status answered = (call);                                                \
    if (answered != (status)) {                                                       \
      fprintf(stderr, "%s:%d: %s answered %d: %s\n", __FILE__, __LINE__, #call,       \
              (int)answered, error.message);                                          \
      exit(1);                                                                        \
    }                                                                                 \
  } while (0)

struct test {
  const char* name;
  void (*run)(void);
};

extern const struct test lock_tests[];
extern const struct test async_tests[];
extern const struct test operator_tests[];
extern const struct test token_tests[];

/* Longer than anything should take on a slow machine. */
#define LONG HF_SECONDS(60)

static inline hf_client* open_client(const char* url) {
  hf_error error = {.size = sizeof error};
  hf_client* client = NULL;
  ANSWERS(HF_OK, hf_client_open(url, HF_Z, NULL, &client, &error));
  return client;
}

static inline hf_lock* new_mutex(const hf_client* client, const char* name) {
  hf_error error = {.size = sizeof error};
  hf_lock* lock = NULL;
  ANSWERS(HF_OK, hf_mutex_new(client, name, HF_Z, NULL, &lock, &error));
  return lock;
}

/* Waiters of a fair lock are all at the engine, where they can be seen; others wait in this process. */
static inline hf_lock* new_fair_mutex(const hf_client* client, const char* name) {
  hf_error error = {.size = sizeof error};
  hf_lock_options fair = {.size = sizeof fair, .fair = 1};
  hf_lock* lock = NULL;
  ANSWERS(HF_OK, hf_mutex_new(client, name, HF_Z, &fair, &lock, &error));
  return lock;
}

static inline hf_lease* take(const hf_lock* lock) {
  hf_error error = {.size = sizeof error};
  hf_lease* lease = NULL;
  ANSWERS(HF_OK, hf_acquire(lock, LONG, NULL, NULL, &lease, &error));
  return lease;
}

/* Waits until the descriptor is readable. */
static inline void wait_for_fd(int fd) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  CHECK(fd >= 0);
  CHECK(poll(&ready, 1, 60000) == 1);
}

static inline int is_readable(int fd) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  return poll(&ready, 1, 0) == 1;
}

#endif
