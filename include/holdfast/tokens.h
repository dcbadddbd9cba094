/* The part of <holdfast/holdfast.h> for leases that move between processes. The rules of that header
 * apply. */
#ifndef HOLDFAST_TOKENS_H
#define HOLDFAST_TOKENS_H

#include <holdfast/holdfast.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Hands the lease over to the owner of the token; hf_adopt continues it, in this process or another
 * one: the same lock with the same fence, while nobody else gets in. Until then it is not renewed
 * and lives on its ttl alone, counted from this call. The token is a secret: anyone who has it can
 * adopt, renew and release. It belongs to the lease, as other strings do: copy it before the lease
 * is freed. Waits for the answer, at most a third of the ttl or 5 s. HF_LOST: it had ended before;
 * HF_UNAVAILABLE: no answer, so it is not known whether the engine carried it out; the lock is
 * released in the background, or ends with its ttl; HF_NOT_HELD: nothing to detach. The lease holds
 * nothing afterwards, whatever the answer, and is not lost. The exception is HF_UNSUPPORTED, after
 * which it goes on as before: the engine cannot do it, or it is a leadership, a degraded lease, or
 * a lease of a recursive lock or a multi-lock. */
hf_status hf_detach(hf_lease* lease, hf_text* token, hf_error* error);
/* The token is taken by hf_call_token. If the call is freed before that, the lease ends with its
 * ttl. */
hf_status hf_detach_start(hf_lease* lease, hf_queue* queue, uint64_t tag, hf_call** call,
                          hf_error* error);

typedef struct hf_adopt_options {
  size_t size;
  hf_nanoseconds ttl;      /* of the lease from now on; 0: what it had */
  hf_nanoseconds notice;   /* as in hf_lock_options */
  hf_nanoseconds max_hold; /* from the adoption on; 0: no limit */
  hf_nanoseconds wait;     /* how long an engine that does not answer is asked again; 0: 5 s */
  int32_t no_renewal;      /* not 0: ends by itself after ttl */
  int32_t reserved;        /* 0 */
} hf_adopt_options;

/* Continues a lease that was detached, by any client of the same engine and namespace: with the same
 * fence, renewed as from now. This uses up the token. HF_INVALID: not a token, or one of another
 * engine or namespace; HF_LOST: the lease has ended, was adopted or released before, was revoked,
 * or is of another server; HF_UNAVAILABLE: no answer in time, so it is not known whether the token
 * is used up: if it is, the lock is released in the background, else nothing has changed;
 * HF_UNSUPPORTED. options, cancel: may be NULL. The lease does not keep the client open. */
hf_status hf_adopt(const hf_client* client, const char* token, size_t token_length,
                   const hf_adopt_options* options, hf_cancel* cancel, hf_lease** lease,
                   hf_error* error);
/* The lease is taken by hf_call_lease. */
hf_status hf_adopt_start(const hf_client* client, const char* token, size_t token_length,
                         const hf_adopt_options* options, hf_queue* queue, uint64_t tag,
                         hf_call** call, hf_error* error);
/* For programs that only pass a token on: each waits at most 5 s, answers as hf_adopt does, and
 * leaves the token as it is. The lease ends `ttl` after this call; 0: after the time that it was
 * acquired with. */
hf_status hf_renew_token(const hf_client* client, const char* token, size_t token_length,
                         hf_nanoseconds ttl, hf_error* error);
hf_status hf_renew_token_start(const hf_client* client, const char* token, size_t token_length,
                               hf_nanoseconds ttl, hf_queue* queue, uint64_t tag, hf_call** call,
                               hf_error* error);
/* Frees the lock at once. HF_UNAVAILABLE: no answer; if it was not carried out, the ttl ends it. */
hf_status hf_release_token(const hf_client* client, const char* token, size_t token_length,
                           hf_error* error);
hf_status hf_release_token_start(const hf_client* client, const char* token, size_t token_length,
                                 hf_queue* queue, uint64_t tag, hf_call** call, hf_error* error);
/* The outcome of hf_detach_start, and with HF_OK the token, which belongs to the call. */
hf_status hf_call_token(const hf_call* call, hf_text* token, hf_error* error);

#ifdef __cplusplus
}
#endif

#endif
