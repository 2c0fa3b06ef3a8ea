// Pinning on a user's request: what cannot be done is said, since a free thread is slower without a trace.
#pragma once

#include <string>

namespace rodeo::base {

/// pin_thread(), with a warning in the log that names the thread if the CPU is not there or forbidden. Before the data flow.
void pin_thread_or_warn(int cpu, const std::string& thread);

}  // namespace rodeo::base
