// Speeds that no driver can exceed on this machine, measured in the run that is compared with them.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

namespace rodeo::bench {

/// Bytes per second of streaming (non-temporal) stores of one thread, in a cycle over this memory: the best of eight
/// tries that share `time`. 0 for less than a mebibyte.
double store_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time);

/// Bytes per second of memcpy from one half of the memory into the other, measured like store_ceiling().
double copy_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time);

/// Exchanges per second of bare requests and answers over a Unix socket to another process, one at a time, with the sizes of
/// a register access; both sides poll for `spin` before they sleep. 0 if the sockets cannot be created.
double ping_pong_ceiling(std::chrono::microseconds spin, std::chrono::milliseconds time);

}  // namespace rodeo::bench
