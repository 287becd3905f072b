// SPDX-License-Identifier: MIT
// A worker that exchanges messages with all others, for tests of the transport
// tcp with hostile peers:
//
//     tcp_worker SPEC TIMEOUT BLOCKS LEN [ring]
//     tcp_worker key|token FILE
//     tcp_worker check SPEC
//
// In each of BLOCKS blocks (0: until an exchange fails) it runs ROUNDS rounds,
// in which every pair of workers exchanges LEN bytes, or with `ring` every pair
// of neighbours. TIMEOUT is that of an exchange in seconds. Prints when it has
// joined and how long each block took. Prints an error, how long the failed
// exchange took and the most memory it had, to stderr, and then exits with 3;
// with 4 if it cannot join. `check` checks the links of a peers file.
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <laconic/laconic.h>

enum { ROUNDS = 200, FAILED = 3, NOT_JOINED = 4, TAG = 1 };

typedef struct job {
    lac_transport *t;
    bool ring;
    double timeout;
    size_t len;
    char *bytes; // that it sends
    lac_send *sends;
    lac_receive *receives;
    size_t peers;
} job;

static int prepare(job *j)
{
    const uint32_t rank = lac_transport_rank(j->t);
    const uint32_t world = lac_transport_world(j->t);
    j->bytes = calloc(1, j->len + 1);
    j->sends = calloc(world, sizeof(*j->sends));
    j->receives = calloc(world, sizeof(*j->receives));
    if (j->bytes == NULL || j->sends == NULL || j->receives == NULL) {
        return 0;
    }
    for (uint32_t peer = 0; peer < world; peer++) {
        const uint32_t distance = (peer + world - rank) % world;
        if (peer != rank &&
            (!j->ring || distance == 1 || distance == world - 1)) {
            j->sends[j->peers] = (lac_send){
                .peer = peer, .tag = TAG, .data = j->bytes, .len = j->len};
            j->receives[j->peers].peer = peer;
            j->receives[j->peers].tag = TAG;
            j->peers++;
        }
    }
    return 1;
}

static void print_memory(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    (void)fprintf(stderr, "peak memory %ld KiB\n", used.ru_maxrss);
}

static int run_block(job *j)
{
    for (int round = 0; round < ROUNDS; round++) {
        const double begun = lac_transport_now(j->t);
        if (lac_transport_exchange(
                j->t, j->sends, j->peers, j->receives, j->peers,
                begun + j->timeout) != LAC_OK) {
            (void)fprintf(
                stderr, "worker %u: error: %s\nfailed after %.3f seconds\n",
                lac_transport_rank(j->t), lac_error_message(),
                lac_transport_now(j->t) - begun);
            print_memory();
            return FAILED;
        }
    }
    return 0;
}

static int run(job *j, long blocks)
{
    if (!prepare(j)) {
        return EXIT_FAILURE;
    }
    for (long block = 0; blocks == 0 || block < blocks; block++) {
        const double begun = lac_transport_now(j->t);
        const int result = run_block(j);
        if (result != 0) {
            return result;
        }
        (void)printf("block %.9f\n", lac_transport_now(j->t) - begun);
        (void)fflush(stdout);
    }
    return 0;
}

static void print_peer(void *context, const lac_peer_report *peer)
{
    (void)context;
    (void)printf("peer %u: %s\n", peer->rank, peer->status);
}

static int check_peers(const char *spec)
{
    if (lac_peers_check(spec, print_peer, NULL) != LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return EXIT_FAILURE;
    }
    print_memory();
    return 0;
}

// Makes a file, and prints the public key of a key.
static int make_file(const char *what, const char *path)
{
    char text[LAC_KEY_TEXT_SIZE] = "";
    if ((what[0] == 'k' ? lac_key_create(path, text)
                        : lac_token_create(path)) != LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return EXIT_FAILURE;
    }
    (void)printf("%s\n", text);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return strcmp(argv[1], "check") == 0 ? check_peers(argv[2])
                                             : make_file(argv[1], argv[2]);
    }
    if (argc != 5 && argc != 6) {
        return 2;
    }
    job j = {
        .ring = argc == 6,
        .timeout = strtod(argv[2], NULL),
        .len = strtoul(argv[4], NULL, 10),
    };
    if (lac_transport_join(&j.t, argv[1], NULL, LAC_RANK_ANY, LAC_RANK_ANY) !=
        LAC_OK) {
        (void)fprintf(stderr, "cannot join: %s\n", lac_error_message());
        print_memory();
        return NOT_JOINED;
    }
    (void)printf("worker %u joined\n", lac_transport_rank(j.t));
    (void)fflush(stdout);
    const int result = run(&j, strtol(argv[3], NULL, 10));
    lac_transport_leave(j.t);
    free(j.bytes);
    free(j.sends);
    free(j.receives);
    return result;
}
