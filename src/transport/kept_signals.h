// Providers of libfabric, and libraries that they load, replace our signal handlers.
#pragma once

#include <array>
#include <csignal>
#include <mutex>

namespace rodeo::transport {

/// The destructor restores the handlers that the constructor found. Put it around every call that makes libfabric objects;
/// one at a time in a process.
class KeptSignals {
 public:
  KeptSignals();
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  std::array<struct sigaction, NSIG> actions_{};
};

}  // namespace rodeo::transport
