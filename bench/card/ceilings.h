// What no driver can beat on this machine, measured in the run that it is compared with.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace rodeo::bench {

/// Bytes per second of streaming (non-temporal) stores into this memory by one thread, going round in it: the best of eight
/// tries that share `time`. 0 for less than a mebibyte.
double store_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time);

/// Bytes per second of memcpy from one half of it into the other, likewise.
double copy_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time);

/// Bare questions and answers of as many bytes as a register access has, over a Unix socket to another process, one at a
/// time; both sides poll for `spin` before they sleep. Exchanges per second; 0 if sockets cannot be had.
double ping_pong_ceiling(std::chrono::microseconds spin, std::chrono::milliseconds time);

}  // namespace rodeo::bench
