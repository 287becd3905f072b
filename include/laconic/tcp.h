// SPDX-License-Identifier: MIT
#ifndef LACONIC_TCP_H
#define LACONIC_TCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>
#include <laconic/transport.h>

#ifdef __cplusplus
extern "C" {
#endif

// Keys of the transport "tcp", and two calls for programs that share addresses
// and keys of their workers by other means:
//
//     lac_tcp_listen(&listener, "tcp");                 // in every process
//     ... all processes share address:port and key ...
//     lac_tcp_join(&t, listener, peers, rank, world);
//
// All workers of a group know the public keys of all others, and no other
// process can take part. The calls need the module laconic_tcp.so, which links
// OpenSSL; without it they fail with LAC_ERR_UNSUPPORTED.

/// Room for a public key as text: 44 characters and a NUL.
#define LAC_KEY_TEXT_SIZE 45

/// lac_key_default_path writes the path of this user's key, which is
/// laconic/key in XDG_CONFIG_HOME or ~/.config. Fails with LAC_ERR_NOTFOUND
/// when neither is set, or LAC_ERR_SPACE.
LAC_FALLIBLE lac_status lac_key_default_path(char *out, size_t cap);

/// lac_key_create writes a new private key to `path`, readable by this user
/// alone, and its public key to `text_out`. Folders that are missing are made.
/// Fails with LAC_ERR_INVALID if `path` exists or cannot be written.
LAC_FALLIBLE lac_status
lac_key_create(const char *path, char text_out[LAC_KEY_TEXT_SIZE]);

/// lac_key_read writes the public key of the private key in `path`. Fails with
/// LAC_ERR_NOTFOUND, LAC_ERR_CORRUPT, or LAC_ERR_INVALID if others may read it
/// or if its owner is neither the effective user of this process nor root.
LAC_FALLIBLE lac_status
lac_key_read(const char *path, char text_out[LAC_KEY_TEXT_SIZE]);

/// lac_token_create writes a new shared secret of 32 bytes to `path`, readable
/// by this user alone. Fails like lac_key_create.
LAC_FALLIBLE lac_status lac_token_create(const char *path);

/// One worker of a group, as all workers must list it.
typedef struct lac_tcp_peer {
    const char *name;     ///< For messages; NULL: its rank.
    const char *address;  ///< "host:port" or "[IPv6]:port".
    const char *key;      ///< Its public key as text.
    uint64_t reserved[2]; ///< Must be 0.
} lac_tcp_peer;

typedef struct lac_tcp_listener lac_tcp_listener;

/// lac_tcp_listen makes a key for this run and listens. `spec` is "tcp" with
/// the settings listen, port (0: any free port), encryption and timeout.
/// Fails with LAC_ERR_INVALID, LAC_ERR_UNSUPPORTED or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status
lac_tcp_listen(lac_tcp_listener **out, const char *spec);

/// lac_tcp_port returns the port, lac_tcp_key the public key as text.
LAC_API uint16_t lac_tcp_port(const lac_tcp_listener *listener);
LAC_API const char *lac_tcp_key(const lac_tcp_listener *listener);

/// lac_tcp_socket returns the descriptor of the socket that listens, which a
/// forked process closes as lac_transport_sockets describes.
LAC_API int lac_tcp_socket(const lac_tcp_listener *listener);

/// lac_tcp_join connects the workers peers[0..world), of which this one is
/// number `rank`, and waits for all of them, at most for the setting timeout.
/// It releases `listener`, also when it fails.
/// Fails with LAC_ERR_INVALID, LAC_ERR_PEER or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_tcp_join(
    lac_transport **out, lac_tcp_listener *listener, const lac_tcp_peer *peers,
    uint32_t rank, uint32_t world);

/// lac_tcp_close releases a listener that was not joined. NULL is allowed.
LAC_API void lac_tcp_close(lac_tcp_listener *listener);

/// What a worker found out about one line of a peers file.
typedef struct lac_peer_report {
    const char *name;
    const char *address;
    uint32_t rank;
    const char *status; ///< "ok", "this machine", or why it is missing.
    bool answered;      ///< Also true for this machine.
    double rtt_seconds; ///< 0 for this machine, or if it did not answer.
    double mbit;        ///< Bandwidth to it; 0 like rtt_seconds.
    uint64_t reserved[4];
} lac_peer_report;

/// lac_peers_check listens on this worker's line of the peers file of `spec`
/// ("tcp:peers=FILE"), connects to all others that run the same check, measures
/// the links, and calls `report` for every line, in order. Lines that do not
/// answer are no failure. Fails with LAC_ERR_INVALID, LAC_ERR_NOTFOUND,
/// LAC_ERR_UNSUPPORTED or LAC_ERR_NOMEM.
LAC_FALLIBLE lac_status lac_peers_check(
    const char *spec,
    void (*report)(void *context, const lac_peer_report *peer), void *context);

#ifdef __cplusplus
}
#endif

#endif
