// SPDX-License-Identifier: MIT
// The bytes of HELLO, as docs/format.md describes them.
#include "transport/tcp/hello.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

enum {
    AT_VERSION = 4,
    AT_LENGTH = 6,
    AT_FLAGS = 8,
    AT_WORLD = 12,
    AT_SENDER = 16,
    AT_RECEIVER = 20,
    AT_INCARNATION = 24,
    AT_SESSION = 32,
    AT_BINDING = 64,

    FLAG_ENCRYPTION = 1,
};

static const uint8_t magic[4] = {'L', 'A', 'C', 'H'};

bool laci_tcp_session_digest(
    const laci_tcp_roster *roster, uint8_t out[LACI_TCP_DIGEST])
{
    static const char label[] = "laconic tcp 1";
    EVP_MD_CTX *const context = EVP_MD_CTX_new();
    bool made = context != NULL &&
                EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1 &&
                EVP_DigestUpdate(context, label, sizeof(label)) == 1;
    for (uint32_t i = 0; made && i < roster->count; i++) {
        made = EVP_DigestUpdate(
                   context, roster->entries[i].key, LACI_TCP_KEY) == 1;
    }
    made = made && EVP_DigestFinal_ex(context, out, NULL) == 1;
    EVP_MD_CTX_free(context);
    return made;
}

void laci_tcp_hello_write(
    const laci_tcp_hello *hello, uint8_t out[LACI_TCP_HELLO])
{
    memcpy(out, magic, sizeof(magic));
    laci_put_u16(out + AT_VERSION, LACI_TCP_VERSION);
    laci_put_u16(out + AT_LENGTH, LACI_TCP_HELLO);
    laci_put_u32(out + AT_FLAGS, hello->encryption ? FLAG_ENCRYPTION : 0);
    laci_put_u32(out + AT_WORLD, hello->world);
    laci_put_u32(out + AT_SENDER, hello->sender);
    laci_put_u32(out + AT_RECEIVER, hello->receiver);
    laci_put_u64(out + AT_INCARNATION, hello->incarnation);
    memcpy(out + AT_SESSION, hello->session, LACI_TCP_DIGEST);
    memcpy(out + AT_BINDING, hello->binding, LACI_TCP_DIGEST);
}

// Compares a field of HELLO and writes the reason if it differs.
static bool check_field(
    const char *what, uint32_t found, uint32_t expected,
    char reason_out[LACI_TCP_REASON])
{
    if (found != expected) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON, "its HELLO has %s %u, expected %u",
            what, found, expected);
    }
    return found == expected;
}

static bool check_digest(
    const uint8_t *found, const uint8_t *expected, const char *reason,
    char reason_out[LACI_TCP_REASON])
{
    if (CRYPTO_memcmp(found, expected, LACI_TCP_DIGEST) == 0) {
        return true;
    }
    (void)snprintf(reason_out, LACI_TCP_REASON, "%s", reason);
    return false;
}

bool laci_tcp_hello_read(
    const uint8_t bytes[LACI_TCP_HELLO], laci_tcp_hello *expected,
    char reason_out[LACI_TCP_REASON])
{
    if (memcmp(bytes, magic, sizeof(magic)) != 0) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "its first message is not a HELLO of laconic");
        return false;
    }
    const uint32_t flags = laci_get_u32(bytes + AT_FLAGS);
    const bool good =
        check_field(
            "protocol version", laci_get_u16(bytes + AT_VERSION),
            LACI_TCP_VERSION, reason_out) &&
        check_field(
            "length", laci_get_u16(bytes + AT_LENGTH), LACI_TCP_HELLO,
            reason_out) &&
        check_field(
            "unknown flags", flags & ~(uint32_t)FLAG_ENCRYPTION, 0,
            reason_out) &&
        check_field(
            "a world of", laci_get_u32(bytes + AT_WORLD), expected->world,
            reason_out) &&
        check_digest(
            bytes + AT_SESSION, expected->session,
            "it lists other workers: its peers file differs", reason_out) &&
        check_field(
            "sender", laci_get_u32(bytes + AT_SENDER), expected->sender,
            reason_out) &&
        check_field(
            "receiver", laci_get_u32(bytes + AT_RECEIVER), expected->receiver,
            reason_out) &&
        check_digest(
            bytes + AT_BINDING, expected->binding,
            "its HELLO belongs to another connection", reason_out);
    if (good && flags != (expected->encryption ? FLAG_ENCRYPTION : 0U)) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "its setting is encryption=%s, this worker's encryption=%s",
            flags != 0 ? "yes" : "no", expected->encryption ? "yes" : "no");
        return false;
    }
    expected->incarnation = laci_get_u64(bytes + AT_INCARNATION);
    return good;
}
