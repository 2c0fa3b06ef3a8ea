// Selects the fragments that a consumer takes: by fraction, rate and number of bytes. It decides in the inserting thread,
// without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "rodeo/fragment.h"
#include "rodeo/settings.h"

namespace rodeo::readout {

enum class ShareVerdict : std::uint8_t { accepted, beyond_fraction, beyond_rate, beyond_bytes };

/// Any thread may call its functions.
class EventShare {
 public:
  struct Settings {
    double fraction = 1;           ///< fraction of the fragments, spread evenly over the sequence
    double max_rate_hz = 0;        ///< 0: no limit
    std::uint64_t max_bytes = 0;   ///< sum over all taken fragments; 0: no limit
    bool keep_incomplete = false;  ///< incomplete fragments count as inside fraction and rate
  };

  explicit EventShare(Settings settings)
      : settings_(settings),
        interval_ns_(settings.max_rate_hz > 0 ? static_cast<std::uint64_t>(1e9 / settings.max_rate_hz) : 0) {}

  /// `bytes`: the number that the fragment adds to the byte limit. The rate uses the fragment's own time if it has one, else
  /// the clock.
  ShareVerdict decide(const Fragment& fragment, std::uint64_t bytes) {
    if (!(settings_.keep_incomplete && !fragment.complete())) {
      if (settings_.fraction < 1 && !in_fraction(fragment.sequence)) return ShareVerdict::beyond_fraction;
      if (interval_ns_ != 0 && !in_rate(fragment.handed_over_ns != 0 ? fragment.handed_over_ns : base::steady_now_ns()))
        return ShareVerdict::beyond_rate;
    }
    if (settings_.max_bytes == 0) return ShareVerdict::accepted;
    if (bytes_.load(std::memory_order_relaxed) + bytes > settings_.max_bytes) return ShareVerdict::beyond_bytes;
    if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= settings_.max_bytes) return ShareVerdict::accepted;
    give_back(bytes);  // another thread used up the limit first
    return ShareVerdict::beyond_bytes;
  }

  /// Says that a fragment that was taken with these `bytes` was left out after all.
  void give_back(std::uint64_t bytes) {
    if (settings_.max_bytes != 0) bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

 private:
  // The count of due fragments grows with this sequence number. This needs no state, so all threads get the same answer.
  bool in_fraction(Sequence sequence) const {
    const auto due = [this](double n) { return static_cast<std::uint64_t>(n * settings_.fraction); };
    return due(static_cast<double>(sequence + 1)) != due(static_cast<double>(sequence));
  }

  // One token is added each interval; at most the tokens of a tenth of a second are stored.
  bool in_rate(std::uint64_t now_ns) {
    constexpr std::uint64_t kBurstNs = 100'000'000;
    std::uint64_t next = next_ns_.load(std::memory_order_relaxed);
    for (;;) {
      if (next > now_ns) return false;
      const std::uint64_t start = next + kBurstNs < now_ns ? now_ns - kBurstNs : next;
      if (next_ns_.compare_exchange_weak(next, start + interval_ns_, std::memory_order_relaxed)) return true;
    }
  }

  const Settings settings_;
  const std::uint64_t interval_ns_;
  std::atomic<std::uint64_t> next_ns_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

/// Settings of fraction and rate, for every consumer that takes a share.
const Settings<EventShare::Settings>& share_settings();

}  // namespace rodeo::readout
