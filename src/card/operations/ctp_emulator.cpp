#include "card/operations/ctp_emulator.h"

#include <optional>

#include "card/operations/require_type.h"
#include "card_registers/cru.h"

namespace rodeo::card {

using card_registers::Field;
using card_registers::Register;
using card_registers::cru::reg;

namespace {

constexpr std::uint32_t kLastBunchCrossing = 3563;
constexpr std::uint32_t kManual = 0;
constexpr std::uint32_t kPeriodic = 1;
constexpr std::uint32_t kContinuous = 2;
constexpr std::uint32_t kIdle = 3;
constexpr std::uint32_t kOff = 5;  // a divisor that is too small to make triggers
constexpr std::uint32_t kMostTicks = (1U << 28) - 1;
constexpr Field kMode{0, 2};
constexpr Field kOneTrigger{8};
constexpr Field kReset{31};

Result<void> check(const CtpEmulation& settings) {
  using Mode = CtpEmulation::Mode;
  const std::uint32_t least = settings.mode == Mode::calibration ? 19 : settings.mode == Mode::health ? 11 : 8;
  RODEO_TRY(require_range("the trigger period in ticks", settings.ticks, least, kMostTicks));
  RODEO_TRY(require_range("the last bunch crossing", settings.last_bc, 0, kLastBunchCrossing));
  RODEO_TRY(require_range("the last heartbeat frame", settings.last_hb, 0, 0xffff));
  RODEO_TRY(require_range("the number of heartbeat frames kept", settings.keep, 2, 0xffff));
  RODEO_TRY(require_range("the number of heartbeat frames dropped", settings.drop, 2, 0xffff));
  for (const std::uint32_t bc : settings.bunch_crossings)
    RODEO_TRY(require_range("a fixed bunch crossing", bc, 0, kLastBunchCrossing));
  return {};
}

/// The emulator sends a trigger two ticks after its slot, so the slot is two ticks before the bunch crossing, if need be in
/// the previous orbit.
std::uint32_t slot_of(std::uint32_t bc) {
  if (bc == 0) return 0;
  return bc <= 2 ? kLastBunchCrossing - (2 - bc) : bc - 2;
}

std::uint32_t mode_of(CtpEmulation::Mode mode) {
  if (mode == CtpEmulation::Mode::manual) return kManual;
  return mode == CtpEmulation::Mode::continuous ? kContinuous : kPeriodic;
}

}  // namespace

Result<void> start_ctp(Card& card, const CtpEmulation& settings) {
  using Mode = CtpEmulation::Mode;
  RODEO_TRY(require_type(card, CardType::cru, "the CTP emulator"));
  RODEO_TRY(check(settings));
  Result<void> done;
  const auto write = [&](const Register& where, std::uint32_t value) {
    if (done) done = card.write(where, value);
  };
  const auto modify = [&](const Register& where, Field field, std::uint32_t value) {
    if (!done) return;
    if (auto changed = card.modify(where, field, value); !changed) done = std::unexpected(changed.error());
  };
  write(reg("ctp_run_mode"), kIdle);
  modify(reg("ctp_control"), kReset, 1);
  write(reg("ctp_first_orbit"), settings.first_orbit);
  const auto ticks_if = [&](Mode mode) { return settings.mode == mode ? settings.ticks : kOff; };
  write(reg("ctp_physics_divisor"), ticks_if(Mode::periodic));
  write(reg("ctp_hc_divisor"), ticks_if(Mode::health));
  write(reg("ctp_cal_divisor"), ticks_if(Mode::calibration));
  if (settings.mode == Mode::fixed) {
    for (const std::uint32_t bc : settings.bunch_crossings) write(reg("ctp_fixed_bc"), slot_of(bc));
  }
  write(reg("ctp_bc_max"), settings.last_bc);
  write(reg("ctp_hb_max"), settings.last_hb);
  write(reg("ctp_hb_prescale"), settings.drop << 16 | settings.keep);
  modify(reg("ctp_run_mode"), kMode, kIdle);  // change modes only from idle
  modify(reg("ctp_run_mode"), kMode, mode_of(settings.mode));
  modify(reg("ctp_control"), kReset, 0);
  return done;
}

Result<void> stop_ctp(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "the CTP emulator"));
  RODEO_TRY(card.modify(reg("ctp_run_mode"), kMode, kIdle));
  return {};
}

Result<void> send_trigger(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "the CTP emulator"));
  for (const std::uint32_t value : {1U, 0U}) RODEO_TRY(card.modify(reg("ctp_run_mode"), kOneTrigger, value));
  return {};
}

Result<CtpStatus> read_ctp(Card& card) {
  RODEO_TRY(require_type(card, CardType::cru, "the CTP emulator"));
  std::optional<Error> failed;
  const auto read = [&](const Register& where) -> std::uint32_t {
    const auto word = card.read(where);
    if (!word && !failed) failed = word.error();
    return word.value_or(0);
  };
  const auto ticks_of = [&](const Register& divisor) {
    const std::uint32_t ticks = read(divisor);
    return ticks > kOff ? ticks : 0;
  };
  CtpStatus now;
  switch (kMode.of(read(reg("ctp_run_mode")))) {
    case kManual: now.mode = "manual"; break;
    case kContinuous: now.mode = "continuous"; break;
    case kIdle: now.mode = "idle"; break;
    default: {
      const std::uint32_t physics = ticks_of(reg("ctp_physics_divisor"));
      const std::uint32_t health = ticks_of(reg("ctp_hc_divisor"));
      const std::uint32_t calibration = ticks_of(reg("ctp_cal_divisor"));
      now.mode = physics != 0 ? "periodic" : health != 0 ? "hc" : calibration != 0 ? "cal" : "periodic";
      now.ticks = physics != 0 ? physics : health != 0 ? health : calibration;
    }
  }
  now.last_bc = read(reg("ctp_bc_max"));
  now.last_hb = read(reg("ctp_hb_max"));
  const std::uint32_t prescale = read(reg("ctp_hb_prescale"));
  now.keep = prescale & 0xffff;
  now.drop = prescale >> 16;
  now.first_orbit = read(reg("ctp_first_orbit"));
  if (failed) return std::unexpected(*failed);
  return now;
}

}  // namespace rodeo::card
