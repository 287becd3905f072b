// SPDX-License-Identifier: MIT
// The inside of an MPI module: letters between the members of a session.
//
// Every message starts with a head of 16 bytes on one MPI tag: what it is, the
// caller's tag, the length (and, from whoever gives up, whom it blames). A
// short message follows its head in the same MPI message. A longer one follows
// on a second MPI tag, straight from the caller's memory and, where the
// receiver waits with a buffer, straight into it. Heads of all peers are taken
// in as they come, so that whoever waits never blocks the ones it waits for.
#ifndef LACONIC_TRANSPORT_MPI_SESSION_H
#define LACONIC_TRANSPORT_MPI_SESSION_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>

#include "transport/mpi_settings.h"

enum {
    LACI_MPI_HEAD_TAG = 1,
    LACI_MPI_BULK_TAG,
    LACI_MPI_REDUCE_TAG,

    LACI_MPI_HEAD = 16,        // bytes of a head
    LACI_MPI_INLINE = 3072,    // longest message that follows its head
    LACI_MPI_PIECE = 1 << 30,  // MPI counts in int
    LACI_MPI_PIECES = 64,      // of one message at most
    LACI_MPI_WHY = 400,        // room for the sentence of who gave up
    LACI_MPI_NOTE = 8,         // before it in a note: who, and whom it blamed
    LACI_MPI_REDUCE_MAX = 4096 // floats summed by recursive doubling
};

typedef enum laci_mpi_kind {
    LACI_MPI_DATA,    // the bytes follow in the same MPI message
    LACI_MPI_BULK,    // they follow on the other tag
    LACI_MPI_GAVE_UP, // a sentence follows; the tag is who is to blame
    LACI_MPI_LEFT,    // nothing comes any more; perhaps a note says why
} laci_mpi_kind;

// One message going out or coming in, kept and used again.
typedef struct laci_mpi_letter {
    struct laci_mpi_letter *next;     // free, lent, sent, or a peer's queue
    struct laci_mpi_letter *arriving; // the next one whose bulk is under way
    uint32_t peer;
    uint32_t tag;
    size_t len;
    const void *payload;
    uint8_t *bulk; // memory of its own for a long message
    size_t bulk_cap;
    bool claimed; // a receive of the running exchange has it
    int request_count;
    MPI_Request requests[1 + LACI_MPI_PIECES];
    _Alignas(16) uint8_t block[LACI_MPI_HEAD + LACI_MPI_INLINE];
} laci_mpi_letter;

typedef struct laci_mpi_peer {
    laci_mpi_letter *first; // came before they were asked for
    laci_mpi_letter *last;
    bool left;
    bool gave_up;
} laci_mpi_peer;

typedef struct laci_mpi_session {
    laci_mpi_settings settings; // first: the loader fills them in
    const laci_services *services;
    MPI_Comm comm;
    bool started; // MPI was not there before
    uint32_t rank;
    uint32_t world;

    pthread_t owner;
    pthread_mutex_t lock; // protects `why` until `aborted` is set
    atomic_bool aborted;
    char why[LACI_MPI_WHY];
    bool told; // the others know that this worker gave up

    bool cause_known; // another worker gave up: who, and its sentence
    uint32_t cause_rank;
    char cause[LACI_MPI_WHY];
    uint32_t cause_blamed;
    uint32_t blamed; // by this worker, or LAC_RANK_ANY

    laci_mpi_peer *peers;
    uint32_t left_count;
    laci_mpi_letter *free;
    laci_mpi_letter *lent;
    laci_mpi_letter *sent[2]; // by the parity of the exchange
    unsigned parity;
    laci_mpi_letter *opening; // its head is under way
    laci_mpi_letter *arriving;
    float *scratch; // LACI_MPI_REDUCE_MAX floats

    // The running exchange:
    lac_receive *receives;
    size_t receive_count;
    laci_mpi_letter **claims; // by receive
    size_t claim_cap;
    size_t missing;
    double entered;    // when this exchange first had to wait; 0: not yet
    double idle_since; // 0: something just moved
    unsigned idle_polls;
} laci_mpi_session;

// laci_mpi_check turns a code of MPI into a status.
lac_status laci_mpi_check(
    const laci_mpi_session *s, int code, const char *what, uint32_t peer);

// laci_mpi_post sends one message without waiting.
lac_status laci_mpi_post(
    laci_mpi_session *s, laci_mpi_kind kind, const lac_send *send);

// laci_mpi_reap forgets those letters of a list that have gone out.
lac_status laci_mpi_reap(laci_mpi_session *s, unsigned parity);

// laci_mpi_progress takes in what has come.
lac_status laci_mpi_progress(laci_mpi_session *s);

// laci_mpi_claim gives receive i what came before it was asked for.
lac_status laci_mpi_claim(laci_mpi_session *s, size_t i);

// laci_mpi_recycle keeps a letter for later use.
void laci_mpi_recycle(laci_mpi_session *s, laci_mpi_letter *letter);

// laci_mpi_check_causes fails when this worker was aborted or another gave up.
lac_status laci_mpi_check_causes(const laci_mpi_session *s);

// laci_mpi_blame gives up because of `peer`, with the sentence that
// services->fail just recorded, and tells the others. If it turns out that the
// peer lives and gave up because of another, the sentence becomes that one's.
lac_status laci_mpi_blame(
    laci_mpi_session *s, uint32_t peer, const char *sentence);

// laci_mpi_abort as in the table of the transport.
void laci_mpi_abort(void *state, const char *why);

// laci_mpi_say_left tells everybody that nothing comes any more.
void laci_mpi_say_left(laci_mpi_session *s);

// laci_mpi_hear_sentence and laci_mpi_hear_goodbye take in the letters of one
// that gave up and of one that left.
void laci_mpi_hear_sentence(laci_mpi_session *s, const laci_mpi_letter *letter);
void laci_mpi_hear_goodbye(laci_mpi_session *s, const laci_mpi_letter *letter);

// laci_mpi_rest yields the processor, the longer the less has moved.
void laci_mpi_rest(laci_mpi_session *s, double now);

lac_status laci_mpi_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

lac_status laci_mpi_allreduce(void *state, float *x, size_t n, double deadline);

#endif
