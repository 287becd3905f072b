// SPDX-License-Identifier: MIT
// Where modules are looked for.
#define _POSIX_C_SOURCE 200809L // mkdtemp
#include "lac_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transport/loader.h"

enum { PATH_SIZE = 4096 };

static char folder[64];

static void path_in(const char *name, char out[PATH_SIZE])
{
    (void)snprintf(out, PATH_SIZE, "%s/%s", folder, name);
}

// Modules that are no libraries, some of them in laconic/.
static const char *const files[] = {
    "laconic_near.so", "laconic/laconic_below.so", "laconic_mpi_mpich.so",
    "laconic/laconic_mpi_openmpi.so"};

enum { FILES = sizeof(files) / sizeof(files[0]) };

static int make_folder(void **state)
{
    (void)state;
    char path[PATH_SIZE];
    (void)snprintf(folder, sizeof(folder), "/tmp/lac_test_XXXXXX");
    assert_non_null(mkdtemp(folder));
    path_in("laconic", path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < FILES; i++) {
        path_in(files[i], path);
        FILE *const file = fopen(path, "w");
        assert_non_null(file);
        assert_int_equal(fclose(file), 0);
    }
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char path[PATH_SIZE];
    assert_ok(lac_modules_path(NULL));
    for (size_t i = 0; i < FILES; i++) {
        path_in(files[i], path);
        (void)unlink(path); // a test may have done so
    }
    path_in("laconic", path);
    assert_int_equal(rmdir(path), 0);
    return rmdir(folder);
}

static void the_folder_and_laconic_below_it_have_modules(void **state)
{
    (void)state;
    assert_false(laci_module_exists("near"));
    assert_ok(lac_modules_path(folder));
    assert_true(laci_module_exists("near"));
    assert_true(laci_module_exists("below"));
    char path[PATH_SIZE];
    path_in("laconic/", path); // with a slash at the end
    assert_ok(lac_modules_path(path));
    assert_true(laci_module_exists("below"));
    assert_false(laci_module_exists("near"));
    assert_ok(lac_modules_path(NULL));
    assert_false(laci_module_exists("below"));
}

static void a_missing_module_is_reported_with_its_folder(void **state)
{
    (void)state;
    lac_transport *t = NULL;
    char expected[PATH_SIZE];
    assert_ok(lac_modules_path(folder));
    path_in("laconic_mpi_mpich.so", expected);
    assert_int_equal(unlink(expected), 0);
    (void)snprintf(
        expected, sizeof(expected),
        "mpi: there is no laconic_mpi_mpich.so in %s/", folder);
    assert_fails(
        lac_transport_join(&t, "mpi:library=mpich", NULL, 0, 1),
        LAC_ERR_UNSUPPORTED, expected);
    char library[LAC_LIBRARY_SIZE] = "as before";
    assert_fails(
        lac_transport_library("mpi:library=mpich", library, sizeof(library)),
        LAC_ERR_UNSUPPORTED, expected);
    assert_string_equal(library, "as before");
}

// No MPI is loaded, so the modules decide.
static void the_only_mpi_is_taken_and_two_are_not_guessed_between(void **state)
{
    (void)state;
    lac_transport *t = NULL;
    char path[PATH_SIZE];
    assert_ok(lac_modules_path(folder));
    assert_fails(
        lac_transport_join(&t, "mpi", NULL, 0, 1), LAC_ERR_INVALID,
        "mpi: there are modules for Open MPI and for MPICH, and the program "
        "has loaded neither, expected mpi:library=openmpi or "
        "mpi:library=mpich, by the mpirun that started it");
    path_in("laconic/laconic_mpi_openmpi.so", path);
    assert_int_equal(unlink(path), 0);
    assert_status(
        lac_transport_join(&t, "mpi", NULL, 0, 1), LAC_ERR_UNSUPPORTED);
    assert_non_null(strstr(lac_error_message(), "laconic_mpi_mpich.so"));
}

static void wrong_folders_are_refused_and_change_nothing(void **state)
{
    (void)state;
    static char longest[PATH_SIZE];
    memset(longest, '/', sizeof(longest) - 1);
    assert_ok(lac_modules_path(folder));
    assert_fails(
        lac_modules_path("lib"), LAC_ERR_INVALID,
        "modules: the folder is \"lib\", expected a path that begins with /");
    assert_fails(
        lac_modules_path(""), LAC_ERR_INVALID,
        "modules: the folder is \"\", expected a path that begins with /");
    assert_fails(
        lac_modules_path(longest), LAC_ERR_INVALID,
        "modules: the folder has 4095 characters, expected at most 4094");
    assert_true(laci_module_exists("near"));
    longest[PATH_SIZE - 2] = '\0';
    assert_ok(lac_modules_path(longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            the_folder_and_laconic_below_it_have_modules, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            a_missing_module_is_reported_with_its_folder, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            the_only_mpi_is_taken_and_two_are_not_guessed_between, make_folder,
            remove_folder),
        cmocka_unit_test_setup_teardown(
            wrong_folders_are_refused_and_change_nothing, make_folder,
            remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
