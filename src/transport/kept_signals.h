// Providers of libfabric, and libraries that they are linked to, put signal handlers in the place of ours.
#pragma once

#include <array>
#include <csignal>
#include <mutex>

namespace rodeo::transport {

/// The handlers that there are now are there again at its end. Around whatever makes objects of libfabric; one at a time in a process.
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
