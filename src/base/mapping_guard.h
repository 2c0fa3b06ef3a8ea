// Failed reads of mapped files: a SIGBUS handler maps zeros there and records the fault.
#pragma once

#include <cstddef>
#include <span>

namespace rodeo::base::mapping_guard {

/// Watches a read-only mapping; returns its number, or -1 if 4096 are watched. The first call installs the handler.
int watch(std::span<const std::byte> mapping);

/// Call before unmapping.
void forget(int number);

/// True if a page of the mapping could not be read.
bool was_hit(int number);

}  // namespace rodeo::base::mapping_guard
