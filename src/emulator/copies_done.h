// A fence for stores past the caches: a card's data go to memory that this process never reads.
#pragma once

#include <emmintrin.h>

namespace rodeo::emulator {

/// Orders all earlier stores, also those past the caches, before the later ones. Call it before a client learns of data.
inline void copies_done() { _mm_sfence(); }

}  // namespace rodeo::emulator
