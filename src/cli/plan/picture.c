// SPDX-License-Identifier: MIT
// Pictures are drawn in memory and written whole.
#include "cli/plan/picture.h"

#include <stdlib.h>

#include "cli/report/markup.h"
#include "data/output.h"

void plan_picture_text(
    FILE *f, double x, double y, const char *anchor, const char *text)
{
    (void)fprintf(
        f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    cli_markup_text(f, text);
    (void)fputs("</text>\n", f);
}

lac_status plan_picture_write(
    const char *path, int width, int height, plan_picture_draw *draw,
    const void *context)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const f = open_memstream(&text, &len);
    if (f != NULL) {
        (void)fprintf(
            f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
            "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            width, height, width, height);
        draw(f, context);
        (void)fputs("</svg>\n", f);
    }
    const bool good = f != NULL && ferror(f) == 0;
    lac_status status = LAC_OK;
    if (f == NULL || fclose(f) != 0 || !good) {
        status = lac_fail(LAC_ERR_NOMEM, "%s: no memory for the picture", path);
    } else {
        status = data_file_write(path, (const uint8_t *)text, len);
    }
    free(text);
    return status;
}
