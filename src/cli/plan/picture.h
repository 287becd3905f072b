// SPDX-License-Identifier: MIT
// SVG pictures.
#ifndef LACONIC_CLI_PLAN_PICTURE_H
#define LACONIC_CLI_PLAN_PICTURE_H

#include <stdio.h>

#include <laconic/laconic.h>

// plan_picture_write makes a picture of so many pixels the content of `path`.
// `draw` prints its elements on a white background.
// Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
typedef void plan_picture_draw(FILE *f, const void *context);
lac_status plan_picture_write(
    const char *path, int width, int height, plan_picture_draw *draw,
    const void *context);

// plan_picture_text prints a text of any characters, whose `anchor` ("start",
// "middle" or "end") is at x, y.
void plan_picture_text(
    FILE *f, double x, double y, const char *anchor, const char *text);

#endif
