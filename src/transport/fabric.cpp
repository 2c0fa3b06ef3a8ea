#include "transport/fabric.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "transport/kept_signals.h"

namespace rodeo::transport {
namespace {

using Open = void (*)(const std::string&, const std::string&, PortSize, Result<std::unique_ptr<FabricPort>>&);

/// The library beside this one in a build folder, or in rodeo/ of an installation.
std::filesystem::path library_path() {
  Dl_info here{};
  (void)::dladdr(reinterpret_cast<const void*>(&open_fabric), &here);
  const auto directory = std::filesystem::path(here.dli_fname == nullptr ? "" : here.dli_fname).parent_path();
  const auto installed = directory / "rodeo" / "librodeo_fabric.so";
  std::error_code ignored;
  return std::filesystem::exists(installed, ignored) ? installed : directory / "librodeo_fabric.so";
}

/// Libraries that libfabric loads replace our signal handlers while they are loaded. The handlers of libinfinipath end the
/// process at SIGINT and SIGTERM: a stop command at that moment would abort the run, although KeptSignals restores our
/// handlers afterwards.
void leave_signals_alone() { (void)::setenv("IPATH_NO_BACKTRACE", "1", 0); }

Result<Open> load() {
  leave_signals_alone();
  const auto path = library_path();
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const open = library == nullptr ? nullptr : ::dlsym(library, "rodeo_open_fabric");
  if (open == nullptr) {
    const char* const reason = ::dlerror();
    return std::unexpected(Error{
        "transport.no_fabric", fmt::format("the network cannot be used: {}", reason == nullptr ? "no reason given" : reason),
        path.string(), "`ldd` shows what the library lacks; Debian's package is libfabric1"});
  }
  return reinterpret_cast<Open>(open);
}

std::mutex handlers;  // signal handlers belong to the whole process

}  // namespace

KeptSignals::KeptSignals() : lock_(handlers) {
  for (int signal = 1; signal < NSIG; ++signal)
    (void)::sigaction(signal, nullptr, &actions_[static_cast<std::size_t>(signal)]);
}

KeptSignals::~KeptSignals() {
  for (int signal = 1; signal < NSIG; ++signal)
    (void)::sigaction(signal, &actions_[static_cast<std::size_t>(signal)], nullptr);
}

Result<std::unique_ptr<FabricPort>> open_fabric(const std::string& provider, const std::string& listen, PortSize size) {
  const KeptSignals kept;
  static const Result<Open> open = load();
  if (!open) return std::unexpected(open.error());
  Result<std::unique_ptr<FabricPort>> port;
  (*open)(provider, listen, size, port);
  return port;
}

}  // namespace rodeo::transport
