#include "readout/run_info.h"

#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log_file.h"
#include "formats/stream_tags.h"

namespace rodeo::readout {
namespace {

RunInfo& current() {
  static RunInfo info;
  return info;
}

constexpr std::uint64_t kNoPhase = UINT64_MAX;
std::atomic<std::uint64_t> found_phase{kNoPhase};

}  // namespace

void set_frame_phase(std::uint32_t phase) {
  std::uint64_t none = kNoPhase;
  found_phase.compare_exchange_strong(none, phase);
}

std::optional<std::uint32_t> frame_phase() {
  const std::uint64_t phase = found_phase.load();
  return phase == kNoPhase ? std::nullopt : std::optional(static_cast<std::uint32_t>(phase));
}

void set_run_info(RunInfo info) {
  found_phase.store(kNoPhase);
  base::set_log_run(info.run_number == 0 ? std::nullopt : std::optional(info.run_number));
  current() = std::move(info);
}

const RunInfo& run_info() { return current(); }

formats::EventFrameSettings event_frame_settings(const RunInfo& run) {
  const formats::StreamTag tag{.name = run.stream_name, .type = run.stream_type};
  formats::EventFrameSettings frame{
      .source_id = run.source_id, .lumi_block = run.lumi_block, .stream_tags = formats::encode_stream_tags({&tag, 1})};
  apply_run(frame, run);
  return frame;
}

void apply_run(formats::EventFrameSettings& frame, const RunInfo& run) {
  frame.run_number = run.run_number;
  frame.run_type = run.run_type | (run.emulated ? formats::run_type::kSimulation : 0);
}

formats::EventStamp event_stamp(const Fragment& fragment) {
  static const std::uint64_t unix_minus_steady_ns = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(now).count()) - base::steady_now_ns();
  }();
  const std::uint64_t steady_ns = fragment.handed_over_ns != 0 ? fragment.handed_over_ns : base::steady_now_ns();
  const std::uint64_t unix_ns = steady_ns + unix_minus_steady_ns;
  return {.bc_time_s = static_cast<std::uint32_t>(unix_ns / 1'000'000'000),
          .bc_time_ns = static_cast<std::uint32_t>(unix_ns % 1'000'000'000)};
}

}  // namespace rodeo::readout
