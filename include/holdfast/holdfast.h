/* holdfast for C, and for every language that can call C.
 *
 *   hf_error error = {.size = sizeof error};
 *   hf_client* client = NULL;
 *   hf_lock* stock = NULL;
 *   hf_lease* lease = NULL;
 *   if (hf_client_open("redis://localhost", HF_Z, NULL, &client, &error) != HF_OK) die(error.message);
 *   if (hf_mutex_new(client, "stock/42", HF_Z, NULL, &stock, &error) != HF_OK) die(error.message);
 *   switch (hf_acquire(stock, HF_SECONDS(1), NULL, NULL, &lease, &error)) {
 *     case HF_OK: write_order(hf_lease_fence(lease)); hf_release(lease, NULL); break;
 *     case HF_TIMED_OUT: too_busy(); break;
 *     default: die(error.message);
 *   }
 *   hf_lease_free(lease);
 *   hf_lock_free(stock);
 *   hf_client_free(client);
 *
 * docs/guarantees.md says what is promised; terms mean the same in every language.
 *
 * Answers. A call that can fail returns an hf_status and fills the hf_error passed to it, which may
 * be NULL. Handles are set only with HF_OK. No C++ exception leaves the library, and a NULL or a
 * number out of its limits is HF_INVALID. HF_UNAVAILABLE means that the outcome is unknown; it is
 * resolved in the background.
 *
 * Strings are UTF-8 with a length in bytes; HF_Z instead of the length: up to the terminating zero.
 * Strings in structures that the library fills belong to the handle that the call was made on, and
 * live as long as it does. They are followed by a zero.
 *
 * Times are nanoseconds. HF_FOREVER is no limit; a wait of zero or less tries once.
 *
 * Structures begin with their size, which the caller sets: {.size = sizeof options}. In options
 * zero is the default, for every member. So programs and libraries of different versions work
 * together: the library reads and fills no more than `size`. An option that it does not know yet is
 * HF_INVALID.
 *
 * Ownership. Every handle that a call sets belongs to the caller, who frees it with the _free of
 * its type, which accepts NULL, in any order. A client is closed when it, its locks and its latches
 * are freed: leases and calls do not keep it open. Freeing a lease releases the lock without
 * waiting for the answer; freeing a call cancels it.
 *
 * Threads. Every call may be made from any thread, and several may use one handle at once. Only a
 * _free must be the last use of its handle. The library never calls back: to learn what happens
 * later, ask for it or wait for a descriptor.
 *
 * Waiting. Blocking calls take a wait and an hf_cancel, which another thread may fire. Calls that end in
 * _start return at once with an hf_call: poll() its descriptor, or give many calls one hf_queue, whose
 * single descriptor is readable while an answer is there. Waiting calls need no threads.
 *
 * Descriptors belong to their handles: poll them for reading, do not read, write or close them.
 *
 * fork(). In the child all handles of the parent are inert: calls return HF_CANCELLED, nothing is sent,
 * leases are not valid, _free frees memory only. Open a client of its own in the child.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Everything is exported under this symbol version. It changes with an incompatible interface only. */
#define HF_ABI 1
/* The version of the library, "0.1.0". */
const char* hf_version(void);

/* ---- answers ------------------------------------------------------------------------------------ */

/* Stable numbers, the same as those of C++ up to HF_INVALID. */
typedef int32_t hf_status;
enum {
  HF_OK = 0,
  HF_BUSY = 1,            /* wait was zero and the lock was not free */
  HF_TIMED_OUT = 2,       /* not granted within the wait */
  HF_CANCELLED = 3,       /* by an hf_cancel or hf_call_cancel; the client is closed; a forked child */
  HF_LOST = 4,            /* the lease had ended before */
  HF_NOT_HELD = 5,        /* nothing of ours to release or change */
  HF_WOULD_DEADLOCK = 6,  /* two upgrades wait for each other */
  HF_UNAVAILABLE = 7,     /* no usable answer: the outcome is unknown, and resolved in the background */
  HF_DENIED = 8,          /* the engine refuses us; the message says what to grant */
  HF_CONFLICT = 9,        /* same name, other parameters (a semaphore's max, a live latch) */
  HF_NAME_CONFLICT = 10,  /* something else lives under this name; it is never overwritten */
  HF_OVERLOADED = 11,     /* a limit is reached: memory, descriptors, threads, a queue */
  HF_UNSUPPORTED = 12,    /* this engine cannot do it; the message says why */
  HF_INVALID = 13,        /* an argument is missing or out of its limits */
  HF_INTERNAL = 14,       /* a defect of the library; please report it */
  HF_PENDING = 15         /* there is no answer yet; never an outcome */
};

#define HF_MESSAGE_SIZE 512

typedef struct hf_error {
  size_t size;
  hf_status code;
  /* With HF_UNAVAILABLE: nothing was sent, so nothing can have happened. */
  int32_t unsent;
  /* "timed out (redis, attempt, held by host:17:backup)": for people, never a secret. Ends with a zero;
   * what does not fit is cut off between characters. Empty after HF_OK. */
  char message[HF_MESSAGE_SIZE];
} hf_error;

/* The sentence for a status: "timed out". Static. */
const char* hf_describe(hf_status status);

typedef struct hf_text {
  const char* data; /* NULL: none */
  size_t length;
} hf_text;
#define HF_Z ((size_t)-1)

typedef int64_t hf_nanoseconds;
#define HF_FOREVER INT64_MAX
#define HF_SECONDS(n) ((hf_nanoseconds)(n)*1000000000)
#define HF_MILLISECONDS(n) ((hf_nanoseconds)(n)*1000000)

/* ---- handles ------------------------------------------------------------------------------------ */

typedef struct hf_client hf_client; /* a connection to one engine */
typedef struct hf_lock hf_lock;     /* a lock of any kind, held or not */
typedef struct hf_lease hf_lease;   /* a lock that is held */
typedef struct hf_latch hf_latch;
typedef struct hf_cancel hf_cancel; /* ends blocking calls */
typedef struct hf_call hf_call;     /* an asynchronous call */
typedef struct hf_queue hf_queue;   /* answers of asynchronous calls */
typedef struct hf_watch hf_watch;   /* events, until it is freed: <holdfast/operators.h> */
typedef struct hf_list hf_list;     /* what a call for operators found, the same */

/* ---- client ------------------------------------------------------------------------------------- */

/* Spaces attempts while the engine does not answer. */
typedef struct hf_retry {
  uint32_t attempts;     /* tries in all; 1: never again; 0: no limit */
  uint32_t reserved;     /* 0 */
  hf_nanoseconds first;  /* the first pause is at most this, then doubled; 0: 50 ms */
  hf_nanoseconds limit;  /* the longest pause; 0: 2 s */
  hf_nanoseconds within; /* without a usable answer for this long: given up; 0: never */
} hf_retry;

typedef struct hf_client_options {
  size_t size;
  hf_text name_space;          /* names in different namespaces never conflict; [A-Za-z0-9._-]{0,64} */
  hf_text payload;             /* who we are, for people; none: "host:pid:program" */
  hf_text password;            /* instead of one in the URL */
  hf_nanoseconds close_within; /* how long closing may take for releases; 0: 2 s */
  hf_retry retry;
  int32_t no_hand_over; /* not 0: threads of this process do not pass a lock on among themselves */
  int32_t reserved;     /* 0 */
} hf_client_options;

/* HF_INVALID: URL or options; HF_UNSUPPORTED: an engine that was not built in; HF_OVERLOADED: no
 * descriptor or thread is left; otherwise what the engine or the file says. Sends nothing that could
 * block for long. options: may be NULL. */
hf_status hf_client_open(const char* url, size_t url_length, const hf_client_options* options,
                         hf_client** client, hf_error* error);
/* Cancels all waiting calls, notifies and releases all leases, and waits for that at most
 * close_within. unconfirmed: NULL, or the names whose release was not confirmed (hf_list_name);
 * their ttl ends them. May be called twice. */
hf_status hf_client_close(hf_client* client, hf_list** unconfirmed, hf_error* error);
void hf_client_free(hf_client* client);
/* Does the engine answer? Connects, logs in and reads, once. */
hf_status hf_client_ping(const hf_client* client, hf_nanoseconds timeout, hf_error* error);
/* "redis", "sqlite", ... */
hf_text hf_client_engine(const hf_client* client);

/* What an engine can do; a call that needs more returns HF_UNSUPPORTED. */
enum {
  HF_CAN_EXPIRE = 1 << 0, /* else a hold lasts while its process lives */
  HF_CAN_PUSH = 1 << 1,
  HF_CAN_FAIR = 1 << 2,
  HF_CAN_SHARED = 1 << 3,
  HF_CAN_PERMITS = 1 << 4,
  HF_CAN_CHANGE_MODE = 1 << 5,
  HF_CAN_LATCH = 1 << 6,
  HF_CAN_LIST = 1 << 7,
  HF_CAN_REPORT_HOLDERS = 1 << 8,
  HF_CAN_REPORT_WAITERS = 1 << 9,
  HF_CAN_REVOKE = 1 << 10,
  HF_CAN_LOCK_DELAY = 1 << 11,
  HF_CAN_NAMESPACES = 1 << 12,
  HF_CAN_EXCLUDE_PROCESSES = 1 << 13,
  HF_CAN_DETACH = 1 << 14 /* <holdfast/tokens.h> */
};
uint64_t hf_client_capabilities(const hf_client* client);

/* ---- cancelling --------------------------------------------------------------------------------- */

/* Once fired it stays fired: every call that uses it returns HF_CANCELLED. */
hf_status hf_cancel_new(hf_cancel** cancel, hf_error* error);
void hf_cancel_fire(hf_cancel* cancel); /* not in a signal handler */
void hf_cancel_free(hf_cancel* cancel); /* may be freed while calls use it; they go on */

/* ---- locks -------------------------------------------------------------------------------------- */

typedef struct hf_lock_options {
  size_t size;
  hf_nanoseconds ttl;        /* kept this long without a sign of life: 100 ms to 24 h; 0: 30 s */
  hf_nanoseconds notice;     /* a loss is announced this long before validity ends; below ttl / 2 */
  hf_nanoseconds lock_delay; /* after an abnormal end the lock stays blocked this long */
  hf_retry retry;            /* all zero: the client's */
  int32_t fair;              /* not 0: granted in the order of arrival */
  int32_t no_renewal;        /* not 0: taken once for ttl, ends by itself */
  /* The longest time that it is held, however often it is renewed: then it is lost, with its
   * notice, and released; at least 100 ms and more than twice the notice; 0: no limit. */
  hf_nanoseconds max_hold;
  hf_text payload; /* who holds or waits, for people; none: the client's. Elections have their id. */
} hf_lock_options;

/* Names are 1 to 512 bytes of UTF-8 without control characters. Nothing is sent. options: may be NULL. */
hf_status hf_mutex_new(const hf_client* client, const char* name, size_t name_length,
                       const hf_lock_options* options, hf_lock** lock, hf_error* error);
/* A mutex that its owner may acquire again, through any hf_lock of the same client and name; see
 * hf_acquire_options::owner. Each acquisition gives a lease; the lock is released with the last of them.
 * All have the fence of the first. HF_LOST: it was lost; release all leases first. */
hf_status hf_recursive_new(const hf_client* client, const char* name, size_t name_length,
                           const hf_lock_options* options, hf_lock** lock, hf_error* error);
/* Many readers or one writer; hf_acquire_options::shared says which. A waiting writer is not overtaken
 * by readers that come later. */
hf_status hf_shared_new(const hf_client* client, const char* name, size_t name_length,
                        const hf_lock_options* options, hf_lock** lock, hf_error* error);
/* max: number of permits, 1 to 1,000,000. While anyone holds or waits another number is HF_CONFLICT. */
hf_status hf_semaphore_new(const hf_client* client, const char* name, size_t name_length, uint32_t max,
                           const hf_lock_options* options, hf_lock** lock, hf_error* error);
/* One of many candidates leads: acquire to campaign, release to resign. id: shown to others, at most 256
 * bytes; NULL: the client's payload. options->fair is ignored. */
hf_status hf_election_new(const hf_client* client, const char* name, size_t name_length, const char* id,
                          size_t id_length, const hf_lock_options* options, hf_lock** lock,
                          hf_error* error);

/* A lock and how a multi-lock takes it. */
typedef struct hf_part {
  size_t size;
  const hf_lock* lock; /* a mutex, a shared lock, or a semaphore; may be freed afterwards */
  uint32_t permits;    /* of a semaphore; 0: 1 */
  int32_t shared;      /* not 0: for reading */
} hf_part;
/* Several locks as one, of any mix of clients: all or nothing, with one deadline, without deadlocks.
 * HF_INVALID: none at all, or the same name of the same client twice. */
hf_status hf_multi_new(const hf_part* parts, size_t count, hf_lock** lock, hf_error* error);

/* Not while a blocking call uses it; asynchronous calls and leases do not need it any more. */
void hf_lock_free(hf_lock* lock);

/* ---- acquiring ---------------------------------------------------------------------------------- */

typedef struct hf_acquire_options {
  size_t size;
  uint32_t permits; /* of a semaphore, all or nothing; 0: 1 */
  int32_t shared;   /* not 0: a shared lock for reading */
  /* Who acquires a recursive lock; 0: the calling thread. Any number the caller chooses, for owners
   * that are not threads. It must not be acquired twice at the same moment for one owner: the later
   * call waits for the earlier one's release. */
  uint64_t owner;
} hf_acquire_options;

/* Waits for the lock. HF_BUSY (if wait is zero), HF_TIMED_OUT, HF_CANCELLED, HF_UNAVAILABLE, ... wait
 * bounds contention and outage alike. options, cancel: may be NULL. */
hf_status hf_acquire(const hf_lock* lock, hf_nanoseconds wait, const hf_acquire_options* options,
                     hf_cancel* cancel, hf_lease** lease, hf_error* error);
/* The same without blocking; the answer is taken by hf_call_lease. queue: may be NULL. tag: what
 * hf_queue_next returns for it. */
hf_status hf_acquire_start(const hf_lock* lock, hf_nanoseconds wait,
                           const hf_acquire_options* options, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error);

/* Releases, and waits for the answer, at most a third of the ttl or 5 s. HF_LOST: it had ended before;
 * HF_UNAVAILABLE: no answer, repeated in the background; HF_NOT_HELD: nothing to release. The lease
 * holds nothing afterwards, whatever the answer; it must still be freed. */
hf_status hf_release(hf_lease* lease, hf_error* error);
/* The lease holds nothing from this call on. */
hf_status hf_release_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                           hf_error* error);
/* Releases what is held, without waiting for the answer. */
void hf_lease_free(hf_lease* lease);

/* ---- leases ------------------------------------------------------------------------------------- */

/* 1: the lock is ours now. Compares with the clock, so it is right even after the process was paused. It
 * says nothing about the time after the call: pass the fence on. */
int hf_lease_valid(const hf_lease* lease);
/* The fencing token: greater than that of every grant of this name that ended before this one was
 * requested. 0: none (released, or degraded). Of a multi-lock: that of its first lock. */
uint64_t hf_lease_fence(const hf_lease* lease);
/* The remaining validity, if no renewal is answered; HF_FOREVER if holds of the engine do not end by
 * time. Of a multi-lock: of the lock that ends first. */
hf_nanoseconds hf_lease_valid_for(const hf_lease* lease);
/* The number of locks in it: more than 1 for a multi-lock, 0 after the release. */
size_t hf_lease_count(const hf_lease* lease);

typedef struct hf_lease_info {
  size_t size;
  uint64_t fence;
  hf_nanoseconds ttl;       /* what the engine granted */
  hf_nanoseconds valid_for; /* as hf_lease_valid_for */
  hf_text name;             /* of the lock */
  hf_text claim;            /* public id, as the command line shows it */
  int32_t valid;
  int32_t wanted;   /* somebody else waits for the lock */
  int32_t degraded; /* granted by the local fallback: excludes no other process */
  int32_t reserved;
} hf_lease_info;
/* index: below hf_lease_count(). HF_NOT_HELD after the release. */
hf_status hf_lease_describe(const hf_lease* lease, size_t index, hf_lease_info* info,
                            hf_error* error);

/* A descriptor that becomes readable when the lease is lost, and stays so; before anyone else can be
 * granted the lock. Not after the release. HF_OVERLOADED: no descriptor is left. */
hf_status hf_lease_lost_fd(hf_lease* lease, int* fd, hf_error* error);
/* Waits for the loss. HF_OK: lost; HF_TIMED_OUT: not yet; HF_NOT_HELD: released; HF_CANCELLED. */
hf_status hf_lease_wait_lost(hf_lease* lease, hf_nanoseconds wait, hf_cancel* cancel,
                             hf_error* error);
hf_status hf_lost_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                        hf_error* error);

/* ---- shared locks, semaphores, elections -------------------------------------------------------- */

/* From reader to writer without releasing. Only for the sole reader with no other upgrade pending;
 * otherwise HF_WOULD_DEADLOCK at once, and the lease stays as it was. The fence changes. */
hf_status hf_upgrade(const hf_lock* lock, hf_lease* lease, hf_error* error);
hf_status hf_upgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                           hf_call** call, hf_error* error);
/* From writer to reader; no writer gets in between. After HF_UNAVAILABLE it may be either: ask again. */
hf_status hf_downgrade(const hf_lock* lock, hf_lease* lease, hf_error* error);
hf_status hf_downgrade_start(const hf_lock* lock, hf_lease* lease, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error);

/* Permits that nobody held at some moment during the call. Asynchronously: hf_call_number. */
hf_status hf_available(const hf_lock* semaphore, uint32_t* permits, hf_error* error);
hf_status hf_available_start(const hf_lock* semaphore, hf_queue* queue, uint64_t tag, hf_call** call,
                             hf_error* error);
/* Sets max for this handle from now on; at the engine it takes effect when nobody holds or waits. */
hf_status hf_resize(hf_lock* semaphore, uint32_t max, hf_error* error);

typedef struct hf_leader {
  size_t size;
  int32_t present; /* 0: nobody leads at the moment */
  int32_t reserved;
  uint64_t fence; /* its term */
  hf_text id;
  hf_text claim;
} hf_leader;
/* Who leads. *call owns the strings of hf_call_leader. */
hf_status hf_leader_start(const hf_lock* election, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error);
/* Events HF_EVENT_LEADER and HF_EVENT_NO_LEADER: the present one at once, then each change; of several
 * quick changes perhaps only the last. */
hf_status hf_leader_watch(const hf_lock* election, hf_watch** watch, hf_error* error);

/* ---- latches ------------------------------------------------------------------------------------ */

/* A count that goes down to zero, for which many wait. life: how long it is kept after its last change,
 * 1 s to 30 days; 0: 24 h. */
hf_status hf_latch_new(const hf_client* client, const char* name, size_t name_length,
                       hf_nanoseconds life, hf_latch** latch, hf_error* error);
void hf_latch_free(hf_latch* latch);
/* 1 to 1,000,000. HF_CONFLICT: it is set and not at zero. */
hf_status hf_latch_set(hf_latch* latch, uint32_t count, hf_error* error);
hf_status hf_latch_set_start(hf_latch* latch, uint32_t count, hf_queue* queue, uint64_t tag,
                             hf_call** call, hf_error* error);
/* Sets *left to the new count, never below zero; HF_NOT_HELD: unset. id: any text; count-downs with the
 * same id count once. NULL: each counts, once, however often it had to be sent. */
hf_status hf_latch_count_down(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                              uint32_t* left, hf_error* error);
hf_status hf_latch_count_down_start(hf_latch* latch, uint32_t by, const char* id, size_t id_length,
                                    hf_queue* queue, uint64_t tag, hf_call** call, hf_error* error);
/* HF_NOT_HELD: unset. Asynchronously: hf_call_number. */
hf_status hf_latch_count(const hf_latch* latch, uint32_t* count, hf_error* error);
hf_status hf_latch_count_start(const hf_latch* latch, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error);
/* Waits until the count is zero; also for a latch that is not set yet. */
hf_status hf_latch_wait(const hf_latch* latch, hf_nanoseconds wait, hf_cancel* cancel,
                        hf_error* error);
hf_status hf_latch_wait_start(const hf_latch* latch, hf_nanoseconds wait, hf_queue* queue,
                              uint64_t tag, hf_call** call, hf_error* error);

/* ---- asynchronous calls ------------------------------------------------------------------------- */

/* HF_PENDING: no answer yet; else the outcome, as often as it is asked for. */
hf_status hf_call_result(const hf_call* call, hf_error* error);
/* Waits for the answer at most that long, then HF_PENDING; the call goes on. */
hf_status hf_call_wait(const hf_call* call, hf_nanoseconds wait, hf_error* error);
/* The outcome of hf_acquire_start or hf_adopt_start, and with HF_OK the lease: once, then HF_NOT_HELD. */
hf_status hf_call_lease(hf_call* call, hf_lease** lease, hf_error* error);
/* The outcome of a call that asks for a number. */
hf_status hf_call_number(const hf_call* call, uint32_t* number, hf_error* error);
/* The outcome of hf_leader_start. The strings are the call's. */
hf_status hf_call_leader(const hf_call* call, hf_leader* leader, hf_error* error);
/* A descriptor that becomes readable when the answer is there. HF_OVERLOADED: none is left. */
hf_status hf_call_fd(hf_call* call, int* fd, hf_error* error);
/* If there is no answer yet it will soon be HF_CANCELLED, unless an answer that is on its way comes
 * first. Calls that end soon by themselves (a release, a count) go on. */
void hf_call_cancel(hf_call* call);
/* Cancels. A grant that nobody took is released. The call's tag will not be returned any more. */
void hf_call_free(hf_call* call);

/* One descriptor for the answers of any number of calls, of any clients. */
hf_status hf_queue_new(hf_queue** queue, hf_error* error);
/* Readable while an answer is in the queue. */
int hf_queue_fd(const hf_queue* queue);
/* Takes the tags of up to `limit` calls that were answered; each tag comes once. HF_PENDING: none. */
hf_status hf_queue_next(hf_queue* queue, uint64_t* tags, size_t limit, size_t* count,
                        hf_error* error);
/* Calls that use it go on; their answers can still be asked for. */
void hf_queue_free(hf_queue* queue);

#ifdef __cplusplus
}
#endif

#include <holdfast/operators.h>
#include <holdfast/tokens.h>

#endif
