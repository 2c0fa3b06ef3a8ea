// The inner loops of a FELIX generator, in the best instructions of this CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/cpu.h"
#include "formats/provable.h"

namespace rodeo::emulator {

struct FelixKernels {
  /// Provable::key() of one link for many triggers. `keys` has the size of `l1ids`.
  void (*keys)(const formats::Provable& provable, std::uint32_t link_id, std::span<const std::uint32_t> l1ids,
               std::uint64_t* keys);
  /// Writes 64-bit words first, first + Provable::kStep ..., at any address.
  void (*words)(std::byte* to, std::size_t count, std::uint64_t first);
  /// Copies a block past the caches; call copies_done() afterwards. `to` and `from` are aligned to 64 bytes; `bytes` is a
  /// multiple of 64.
  void (*copy_block)(std::byte* to, const std::byte* from, std::size_t bytes);
};

/// All CPU levels give the same bytes.
FelixKernels felix_kernels(base::CpuLevel level = base::cpu_level());

}  // namespace rodeo::emulator
