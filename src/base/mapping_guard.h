// Reads of mapped files that the disk does not answer: a SIGBUS handler that puts zeros there and remembers it.
#pragma once

#include <cstddef>
#include <span>

namespace rodeo::base::mapping_guard {

/// Watches a read-only mapping; returns its number, or -1 if 4096 are watched already. Installs the handler the first time.
int watch(std::span<const std::byte> mapping);

/// Before it is unmapped.
void forget(int number);

/// Whether a page of it could not be read.
bool was_hit(int number);

}  // namespace rodeo::base::mapping_guard
