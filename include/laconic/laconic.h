// SPDX-License-Identifier: MIT
// The public interface of laconic. Include this header only. It includes the
// others in the order of the layers.
#ifndef LACONIC_LACONIC_H
#define LACONIC_LACONIC_H

#include <laconic/version.h>

#include <laconic/status.h>

#include <laconic/plugin.h>

#include <laconic/random.h>

#include <laconic/layout.h>

#include <laconic/compress.h>

#include <laconic/topology.h>

#include <laconic/transport.h>

#include <laconic/tcp.h>

#include <laconic/algorithm.h>

#endif
