// Pinning on a user's request: a failure is logged, because an unpinned thread is slower without any sign.
#pragma once

#include <string>

namespace rodeo::base {

/// pin_thread(); logs a warning with the thread's name if the CPU is missing or forbidden. Call before the data flow.
void pin_thread_or_warn(int cpu, const std::string& thread);

}  // namespace rodeo::base
