// SPDX-License-Identifier: MIT
// Reads the workers of a group. A peers file has a line a worker, "name
// address:port key"; blank lines and lines that begin with # do not count.
#include "transport/tcp/roster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

enum { FILE_MAX = 8 << 20 };

lac_status laci_tcp_roster_allocate(
    const laci_services *services, uint32_t count, laci_tcp_roster *out)
{
    out->count = count;
    out->entries = services->zalloc((count + 1) * sizeof(*out->entries));
    if (out->entries == NULL) {
        (void)!services->fail(
            LAC_ERR_NOMEM, "tcp: no memory for a list of %u workers", count);
        return LAC_ERR_NOMEM;
    }
    return LAC_OK;
}

void laci_tcp_roster_release(
    const laci_services *services, laci_tcp_roster *roster)
{
    services->free(roster->entries);
    *roster = (laci_tcp_roster){0};
}

uint32_t laci_tcp_roster_find(
    const laci_tcp_roster *roster, const uint8_t key[LACI_TCP_KEY])
{
    for (uint32_t i = 0; i < roster->count; i++) {
        if (memcmp(roster->entries[i].key, key, LACI_TCP_KEY) == 0) {
            return i;
        }
    }
    return LAC_RANK_ANY;
}

// A line of a peers file, and where the next begins.
typedef struct line {
    const char *path;
    unsigned number;
    const char *text;
    size_t len;
} line;

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

// Takes the next word of a line; an empty one at its end.
static size_t tcp_next_word(line *l, const char **word_out)
{
    while (l->len > 0 && is_space(*l->text)) {
        l->text++;
        l->len--;
    }
    *word_out = l->text;
    size_t len = 0;
    while (len < l->len && !is_space(l->text[len])) {
        len++;
    }
    l->text += len;
    l->len -= len;
    return len;
}

void laci_tcp_printable(const char *text, size_t len, char *out, size_t cap)
{
    size_t i = 0;
    for (; i < len && i + 1 < cap; i++) {
        out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    }
    out[i] = '\0';
}

static lac_status fail_line(
    const laci_services *services, const line *l, const char *what,
    const char *word, size_t len, const char *expected)
{
    char shown[LACI_TCP_NAME];
    laci_tcp_printable(word, len, shown, sizeof(shown));
    return services->fail(
        LAC_ERR_INVALID, "%s:%u: the %s is '%s', expected %s", l->path,
        l->number, what, shown, expected);
}

static lac_status read_name(
    const laci_services *services, line *l, laci_tcp_entry *entry)
{
    const char *word;
    const size_t len = tcp_next_word(l, &word);
    if (len >= LACI_TCP_NAME) {
        return fail_line(
            services, l, "name", word, len, "one of at most 63 bytes");
    }
    laci_tcp_printable(word, len, entry->name, sizeof(entry->name));
    return LAC_OK;
}

static lac_status roster_read_entry(
    const laci_services *services, line *l, laci_tcp_entry *entry)
{
    const char *word;
    LAC_TRY(read_name(services, l, entry));
    size_t len = tcp_next_word(l, &word);
    if (!laci_tcp_address_parse(word, len, &entry->address) ||
        entry->address.port == 0) {
        return fail_line(
            services, l, "address", word, len,
            "host:port or [IPv6]:port; a line is `name address:port key`");
    }
    len = tcp_next_word(l, &word);
    if (!laci_tcp_key_parse(word, len, entry->key)) {
        return fail_line(
            services, l, "key", word, len,
            "the 44 characters that `laconic key` prints");
    }
    len = tcp_next_word(l, &word);
    if (len > 0) {
        return fail_line(
            services, l, "fourth word", word, len, "three words on a line");
    }
    return LAC_OK;
}

// Two workers must not have one key or one name.
static lac_status check_double(
    const laci_services *services, const line *l, const laci_tcp_roster *roster,
    const laci_tcp_entry *entry)
{
    const uint32_t twin = laci_tcp_roster_find(roster, entry->key);
    if (twin != LAC_RANK_ANY) {
        return services->fail(
            LAC_ERR_INVALID,
            "%s:%u: %s has the key of %s, expected one key a worker", l->path,
            l->number, entry->name, roster->entries[twin].name);
    }
    for (uint32_t i = 0; i < roster->count; i++) {
        if (strcmp(roster->entries[i].name, entry->name) == 0) {
            return services->fail(
                LAC_ERR_INVALID,
                "%s:%u: a second worker is named %s, expected one name each",
                l->path, l->number, entry->name);
        }
    }
    return LAC_OK;
}

static bool is_comment(line l)
{
    const char *word;
    return tcp_next_word(&l, &word) == 0 || word[0] == '#';
}

static uint32_t count_lines(const char *text, size_t len)
{
    uint32_t count = 1;
    for (size_t i = 0; i < len && count < LACI_TCP_WORKERS + 1; i++) {
        count += text[i] == '\n';
    }
    return count;
}

static lac_status roster_parse_lines(
    const laci_services *services, const char *path, const char *text,
    size_t len, laci_tcp_roster *roster)
{
    const uint32_t room = roster->count;
    unsigned number = 0;
    roster->count = 0;
    while (len > 0) {
        const char *const end = memchr(text, '\n', len);
        const size_t taken = end == NULL ? len : (size_t)(end - text);
        line l = {path, ++number, text, taken};
        text += taken + (end != NULL);
        len -= taken + (end != NULL);
        if (is_comment(l)) {
            continue;
        }
        if (roster->count == room || roster->count == LACI_TCP_WORKERS) {
            return services->fail(
                LAC_ERR_INVALID, "%s:%u: more than %d workers", path, number,
                LACI_TCP_WORKERS);
        }
        laci_tcp_entry *const entry = &roster->entries[roster->count];
        LAC_TRY(roster_read_entry(services, &l, entry));
        LAC_TRY(check_double(services, &l, roster, entry));
        roster->count++;
    }
    if (roster->count == 0) {
        return services->fail(
            LAC_ERR_INVALID, "%s: no worker, expected a line for each", path);
    }
    return LAC_OK;
}

lac_status laci_tcp_roster_parse(
    const laci_services *services, const char *path, const char *text,
    size_t len, laci_tcp_roster *out)
{
    LAC_TRY(laci_tcp_roster_allocate(services, count_lines(text, len), out));
    const lac_status status =
        roster_parse_lines(services, path, text, len, out);
    if (status != LAC_OK) {
        laci_tcp_roster_release(services, out);
    }
    return status;
}

lac_status laci_tcp_roster_read(
    const laci_services *services, const char *path, laci_tcp_roster *out)
{
    FILE *const file = fopen(path, "rbe");
    if (file == NULL) {
        return services->fail(
            errno == ENOENT ? LAC_ERR_NOTFOUND : LAC_ERR_INVALID,
            "peers file %s: %s", path, strerror(errno));
    }
    lac_status status = LAC_OK;
    char *const text = services->zalloc(FILE_MAX);
    if (text == NULL) {
        status = services->fail(
            LAC_ERR_NOMEM, "tcp: no memory to read peers file %s", path);
    } else {
        const size_t len = fread(text, 1, FILE_MAX, file);
        if (ferror(file) != 0) {
            status = services->fail(
                LAC_ERR_INVALID, "peers file %s: %s", path, strerror(errno));
        } else if (len == FILE_MAX) {
            status = services->fail(
                LAC_ERR_INVALID, "peers file %s has %d bytes or more", path,
                FILE_MAX);
        } else {
            status = laci_tcp_roster_parse(services, path, text, len, out);
        }
    }
    services->free(text);
    (void)fclose(file);
    return status;
}

static lac_status copy_entry(
    const laci_services *services, const lac_tcp_peer *peer, uint32_t rank,
    laci_tcp_entry *out)
{
    if (peer->address == NULL || peer->key == NULL || peer->reserved[0] != 0 ||
        peer->reserved[1] != 0) {
        return services->fail(
            LAC_ERR_INVALID,
            "tcp: worker %u has no address or no key, or sets reserved members",
            rank);
    }
    if (peer->name == NULL) {
        (void)snprintf(out->name, sizeof(out->name), "%u", rank);
    } else {
        laci_tcp_printable(
            peer->name, strlen(peer->name), out->name, sizeof(out->name));
    }
    if (!laci_tcp_address_parse(
            peer->address, strlen(peer->address), &out->address) ||
        out->address.port == 0) {
        return services->fail(
            LAC_ERR_INVALID,
            "tcp: the address of worker %u is '%.80s', expected host:port",
            rank, peer->address);
    }
    if (!laci_tcp_key_parse(peer->key, strlen(peer->key), out->key)) {
        return services->fail(
            LAC_ERR_INVALID,
            "tcp: the key of worker %u is '%.80s', expected 44 characters",
            rank, peer->key);
    }
    return LAC_OK;
}

lac_status laci_tcp_roster_copy(
    const laci_services *services, const lac_tcp_peer *peers, uint32_t count,
    laci_tcp_roster *out)
{
    LAC_TRY(laci_tcp_roster_allocate(services, count, out));
    lac_status status = LAC_OK;
    out->count = 0;
    for (uint32_t i = 0; status == LAC_OK && i < count; i++) {
        laci_tcp_entry *const entry = &out->entries[i];
        status = copy_entry(services, &peers[i], i, entry);
        const uint32_t twin = laci_tcp_roster_find(out, entry->key);
        if (status == LAC_OK && twin != LAC_RANK_ANY) {
            status = services->fail(
                LAC_ERR_INVALID, "tcp: workers %u and %u have one key", twin,
                i);
        }
        out->count++;
    }
    if (status != LAC_OK) {
        laci_tcp_roster_release(services, out);
    }
    return status;
}
