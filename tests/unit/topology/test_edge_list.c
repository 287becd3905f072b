// SPDX-License-Identifier: MIT
// Edge lists, from memory and from files, valid and malformed.
#include "lac_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topology/topology.h"

static laci_graph parsed(const char *text, uint32_t workers)
{
    laci_graph graph = {.name = "file", .workers = workers};
    assert_ok(laci_edge_list_parse(text, strlen(text), &graph));
    return graph;
}

static void assert_refused(const char *text, size_t len, const char *message)
{
    laci_graph graph = {.name = "file", .workers = 8};
    assert_fails(
        laci_edge_list_parse(text, len, &graph), LAC_ERR_INVALID, message);
    laci_graph_fini(&graph);
}

static void lines_become_edges(void **state)
{
    (void)state;
    laci_graph g = parsed("# a comment\n0 1\n\n 1\t2 # more\r\n2,3\n7, 0", 8);
    assert_int_equal(g.count, 4);
    assert_int_equal(g.pairs[1].a, 1);
    assert_int_equal(g.pairs[1].b, 2);
    assert_int_equal(g.pairs[3].a, 7);
    assert_int_equal(g.pairs[3].b, 0);
    laci_graph_fini(&g);
    g = parsed("", 8);
    assert_int_equal(g.count, 0);
    laci_graph_fini(&g);
}

#define SUCH_AS "expected two workers such as \"0 1\""

static void a_wrong_line_is_named(void **state)
{
    (void)state;
    assert_refused("0 1\n2\n", 6, "file: line 2 is \"2\", " SUCH_AS);
    assert_refused("0 1 2", 5, "file: line 1 is \"0 1 2\", " SUCH_AS);
    assert_refused("0 -1", 4, "file: line 1 is \"0 -1\", " SUCH_AS);
    assert_refused("\n\na b", 5, "file: line 3 is \"a b\", " SUCH_AS);
    assert_refused(
        "0 00000000001", 13, "file: line 1 is \"0 00000000001\", " SUCH_AS);
    assert_refused("0 8", 3, "file: line 1 names worker 8, expected 0 to 7");
    assert_refused(
        "4294967296 1", 12,
        "file: line 1 names worker 4294967296, expected 0 to 7");
    assert_refused(
        "0 1\n3 3", 7,
        "file: line 2 connects worker 3 with itself, expected two workers");
}

static void hostile_bytes_are_not_repeated(void **state)
{
    (void)state;
    assert_refused("\x1b[2J\0\xff", 6, "file: line 1 is \"?[2J??\", " SUCH_AS);
    char text[1000];
    memset(text, 'x', sizeof(text));
    assert_refused(
        text, sizeof(text),
        "file: line 1 is "
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\", " SUCH_AS);
}

// Any bytes are either edges or a refusal; the sanitizers watch.
static void any_bytes_are_survived(void **state)
{
    (void)state;
    static const char alphabet[] = "0123456789  \n\n,#\t\r-x";
    const lac_key key =
        lac_key_make(1, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    uint32_t next = 0, good = 0;
    for (int i = 0; i < 20000; i++) {
        const size_t len = lac_key_draw(&key, next++) % 12;
        char *const text = malloc(len + 1); // exact, so that ASan sees the end
        assert_non_null(text);
        for (size_t j = 0; j < len; j++) {
            const uint32_t draw = lac_key_draw(&key, next++);
            text[j] = i % 2 == 0 ? (char)draw
                                 : alphabet[draw % (sizeof(alphabet) - 1)];
        }
        laci_graph graph = {.name = "file", .workers = 10};
        char *const exact = realloc(text, len == 0 ? 1 : len);
        assert_non_null(exact);
        good += laci_edge_list_parse(exact, len, &graph) == LAC_OK;
        for (size_t j = 0; j < graph.count; j++) {
            assert_true(graph.pairs[j].a < 10 && graph.pairs[j].b < 10);
        }
        laci_graph_fini(&graph);
        free(exact);
    }
    assert_between(good, 100, 19000);
}

#define PATH "edges-of-a-test.txt" // in the folder where the tests run

static void write_file(const char *text, size_t len)
{
    FILE *const stream = fopen(PATH, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(text, 1, len, stream), len);
    assert_int_equal(fclose(stream), 0);
}

static void files_are_networks(void **state)
{
    (void)state;
    lac_topology *t;
    write_file("0 1\n1 2\n2 1\n2 0\n2 3\n", 20);
    const lac_status status = lac_topology_open(&t, "file:" PATH, 4, 1);
    (void)remove(PATH);
    assert_ok(status);
    assert_int_equal(lac_topology_edge_count(t), 4); // 1-2 stands there twice
    const lac_edge *edges;
    assert_int_equal(lac_topology_edges(t, 1, 0, &edges), 2);
    assert_true(edges[0].weight == 1.0 / 3); // 0 and 1 have two neighbours
    assert_true(edges[1].weight == 1.0 / 4); // 2 has three
    lac_topology_close(t);
}

static void files_larger_than_a_first_read_are_whole(void **state)
{
    (void)state;
    enum { N = 30000 };
    char *const text = malloc(N * 16);
    size_t len = 0;
    assert_non_null(text);
    for (int i = 0; i < N - 1; i++) {
        len += (size_t)sprintf(text + len, "%d %d\n", i, i + 1);
    }
    lac_topology *t;
    write_file(text, len);
    free(text);
    const lac_status status = lac_topology_open(&t, "file:path=" PATH, N, 1);
    lac_topology *more = NULL;
    const lac_status lonely = lac_topology_open(&more, "file:" PATH, N + 1, 1);
    (void)remove(PATH);
    assert_ok(status);
    assert_int_equal(lac_topology_edge_count(t), N - 1);
    lac_topology_close(t);
    assert_fails(
        lonely, LAC_ERR_INVALID,
        "file: the graph is not connected: no path leads from worker 0 to "
        "worker 30000, expected one");
}

static void files_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    lac_topology *t;
    assert_fails(
        lac_topology_open(&t, "file", 4, 1), LAC_ERR_INVALID,
        "file: no path is given, expected file:PATH");
    assert_fails(
        lac_topology_open(&t, "file:/no/such", 4, 1), LAC_ERR_INVALID,
        "file: /no/such cannot be opened: No such file or directory");
    assert_fails(
        lac_topology_open(&t, "file:/tmp", 4, 1), LAC_ERR_INVALID,
        "file: /tmp cannot be read: Is a directory");
    assert_fails(
        lac_topology_open(&t, "file:/dev/zero", 4, 1), LAC_ERR_INVALID,
        "file: /dev/zero is larger than 268435456 bytes");
    assert_fails(
        lac_topology_open(&t, "file:/dev/null", 2, 1), LAC_ERR_INVALID,
        "file: the graph is not connected: no path leads from worker 0 to "
        "worker 1, expected one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_edges),
        cmocka_unit_test(a_wrong_line_is_named),
        cmocka_unit_test(hostile_bytes_are_not_repeated),
        cmocka_unit_test(any_bytes_are_survived),
        cmocka_unit_test(files_are_networks),
        cmocka_unit_test(files_larger_than_a_first_read_are_whole),
        cmocka_unit_test(files_that_cannot_be_read_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
