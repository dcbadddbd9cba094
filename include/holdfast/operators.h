/* The part of <holdfast/holdfast.h> for operators: who holds and who waits, what happens to a name,
 * how healthy the engine is. The rules of that header apply. */
#ifndef HOLDFAST_OPERATORS_H
#define HOLDFAST_OPERATORS_H

#include <holdfast/holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HF_EXCLUSIVE = 0, HF_SHARED = 1, HF_PERMIT = 2 };

/* Who holds and who waits. Each of these calls waits at most 5 s. */
hf_status hf_inspect(const hf_client* client, const char* name, size_t name_length, hf_list** list,
                     hf_error* error);
/* Names that are held or waited for, and begin with prefix. On Redis it waits at most 5 s for each part of
 * the answer, and 60 s for all. */
hf_status hf_names(const hf_client* client, const char* prefix, size_t prefix_length, hf_list** list,
                   hf_error* error);
/* The checks of `holdfast doctor`. */
hf_status hf_doctor(const hf_client* client, hf_list** list, hf_error* error);
enum { HF_REVOKE_FORCE = 0, HF_REVOKE_SAFE = 1 };
/* Break-glass: takes a lock away; the list has its holders. HF_REVOKE_FORCE frees at once, and two may
 * run until the holder learns; HF_REVOKE_SAFE ends renewals, and nobody else gets in before the lease
 * has ended. claim: a public id; NULL: all. list: may be NULL. */
hf_status hf_revoke(const hf_client* client, const char* name, size_t name_length, int how,
                    const char* claim, size_t claim_length, hf_list** list, hf_error* error);

typedef struct hf_claim {
  size_t size;
  hf_text claim; /* public id */
  hf_text payload;
  hf_text kept_by;    /* its process has ended; this one inherited the hold and keeps it */
  uint64_t fence;     /* 0: none */
  hf_nanoseconds age; /* held or waiting for so long; -1: unknown */
  hf_nanoseconds remaining; /* -1: does not end by time, or nobody can say when */
  uint32_t permits;
  int32_t mode; /* HF_EXCLUSIVE, ... */
  int32_t waiting;    /* 0: a holder */
  int32_t by_session; /* ends with a session of the engine */
} hf_claim;

typedef struct hf_name {
  size_t size;
  hf_text name;
  size_t holders;
  size_t waiters;
  hf_nanoseconds blocked_for; /* by a lock delay; -1: not */
} hf_name;

enum { HF_CHECK_OK = 0, HF_CHECK_WARN = 1, HF_CHECK_FAIL = 2 };
typedef struct hf_check {
  size_t size;
  hf_text name;
  hf_text detail;
  hf_text remedy;
  int32_t state;
  int32_t reserved;
} hf_check;

/* The strings belong to the list. Waiters come after holders, in order. HF_INVALID: index is not
 * below the count, or the list holds something else. */
size_t hf_list_count(const hf_list* list);
hf_status hf_list_claim(const hf_list* list, size_t index, hf_claim* claim, hf_error* error);
hf_status hf_list_name(const hf_list* list, size_t index, hf_name* name, hf_error* error);
hf_status hf_list_check(const hf_list* list, size_t index, hf_check* check, hf_error* error);
/* Of hf_inspect: nobody is granted the lock for this long, because of a lock delay; -1: not
 * blocked. */
hf_nanoseconds hf_list_blocked_for(const hf_list* list);
void hf_list_free(hf_list* list);

enum {
  HF_EVENT_QUEUED = 0,
  HF_EVENT_GRANTED = 1,
  HF_EVENT_RENEWED = 2,
  HF_EVENT_RELEASED = 3,
  HF_EVENT_EXPIRED = 4,
  HF_EVENT_WITHDRAWN = 5,
  HF_EVENT_FORCED = 6,
  HF_EVENT_LEADER = 7,
  HF_EVENT_NO_LEADER = 8,
  HF_EVENT_MISSED = 9 /* more than HF_WATCH_LIMIT were waiting; some were dropped here */
};
#define HF_WATCH_LIMIT 10000

typedef struct hf_event {
  size_t size;
  hf_text name;
  hf_text claim;
  hf_text payload; /* of HF_EVENT_LEADER: its id */
  uint64_t fence;  /* 0: none */
  int32_t kind;
  int32_t mode;
} hf_event;

/* What happens to a name at the engine, by any client; name NULL: to all names. */
hf_status hf_observe(const hf_client* client, const char* name, size_t name_length, hf_watch** watch,
                     hf_error* error);
/* The next event; HF_PENDING: none. The strings live until the next call with this watch. */
hf_status hf_watch_next(hf_watch* watch, hf_event* event, hf_error* error);
/* Readable while an event is there. */
int hf_watch_fd(const hf_watch* watch);
void hf_watch_free(hf_watch* watch);

#ifdef __cplusplus
}
#endif

#endif
