#include "readout/consumer/event_share.h"

namespace rodeo::readout {

const Settings<EventShare::Settings>& share_settings() {
  using S = EventShare::Settings;
  static const Settings<S> settings{
      setting(&S::fraction, "fraction", "Share of the fragments that is taken, spread evenly: 0.01 is one in a hundred.",
              {.minimum = 0, .maximum = 1}),
      setting(&S::max_rate_hz, "max_rate", "Most fragments taken in a second. 0: no limit.",
              {.minimum = 0, .unit = Unit::hertz}),
      setting(&S::keep_incomplete, "keep_incomplete", "Takes incomplete fragments regardless of fraction and max_rate."),
  };
  return settings;
}

}  // namespace rodeo::readout
