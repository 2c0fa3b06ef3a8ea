// Names the plug-in whose code was running when a fatal signal ends the process.
#pragma once

#include <string_view>

namespace rodeo::base {

/// From now on a fatal signal (SIGSEGV, SIGFPE, SIGILL, SIGABRT) in the code of this library, or in functions that it
/// called, names plug-in and thread on stderr; then the process ends as it would have. `library` is a handle of dlopen()
/// that stays open. During set-up, one thread. After a stack overflow nothing is reported: the handler has no stack.
void name_in_crashes(std::string_view plugin, std::string_view path, void* library);

}  // namespace rodeo::base
