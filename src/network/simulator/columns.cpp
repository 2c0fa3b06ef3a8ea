#include "network/simulator/columns.h"

namespace rodeo::network {

namespace {

using settings::Json;

template <typename Row>
auto seconds(std::uint64_t Row::* ns) {
  return [ns](const Row& row) { return static_cast<double>(row.*ns) * 1e-9; };
}

auto latency_us(std::uint64_t Outcome::* ns) {
  return [ns](const Outcome& o) { return o.events_completed == 0 ? Json() : Json(static_cast<double>(o.*ns) * 1e-3); };
}

auto reason(std::uint64_t DropCount::* of) {
  return [of](const Outcome& o) { return o.drops.*of; };
}

auto sent(PacketCount Outcome::* kind) {
  return [kind](const Outcome& o) { return (o.*kind).sent; };
}

double per(double amount, double of) { return of > 0 ? amount / of : 0; }

}  // namespace

std::span<const Column<Outcome>> outcome_columns() {
  using O = Outcome;
  static const Column<O> columns[] = {
      {"max_buffer_bytes", &O::max_buffer_bytes},
      {"max_buffer_payload_bytes", &O::max_buffer_payload_bytes},
      {"max_buffer_cell_bytes", &O::max_buffer_cell_bytes},
      {"max_buffer_s", seconds(&O::max_buffer_ns)},
      {"drops", [](const O& o) { return o.drops.total(); }},
      {"drops_by_reason.pool_full", reason(&DropCount::pool_full)},
      {"drops_by_reason.threshold", reason(&DropCount::threshold)},
      {"drops_by_reason.port_limit", reason(&DropCount::port_limit)},
      {"retransmits", &O::retransmits},
      {"fast_recoveries", &O::fast_recoveries},
      {"tail_loss_probes", &O::probes},
      {"timeouts", &O::timeouts},
      {"duplicates", &O::duplicates},
      {"events_offered", &O::events_offered},
      {"events_assigned", &O::events_assigned},
      {"events_completed", &O::events_completed},
      {"completed_rate_hz", &O::completed_rate_hz},
      {"latency_p50_us", latency_us(&O::latency_p50_ns)},
      {"latency_p99_us", latency_us(&O::latency_p99_ns)},
      {"latency_max_us", latency_us(&O::latency_max_ns)},
      {"virtual_seconds", seconds(&O::virtual_ns)},
      {"packet_by_packet_s", seconds(&O::packet_by_packet_ns)},
      {"wall_seconds", &O::wall_seconds},
      {"cpu_seconds", &O::cpu_seconds},
      {"cpu_seconds_per_virtual_second",
       [](const O& o) { return per(o.cpu_seconds, static_cast<double>(o.virtual_ns) * 1e-9); }},
      {"packets.data", sent(&O::data)},
      {"packets.ack", sent(&O::ack)},
      {"packets.request", sent(&O::request)},
      {"packet_hops", &O::packet_hops},
      {"packet_hops_per_cpu_second", [](const O& o) { return per(static_cast<double>(o.packet_hops), o.cpu_seconds); }},
  };
  return columns;
}

std::span<const Column<PacketCount>> count_columns() {
  using P = PacketCount;
  static const Column<P> columns[] = {
      {"sent", &P::sent},
      {"delivered", &P::delivered},
      {"dropped", &P::dropped},
      {"in_flight", &P::in_flight},
      {"sent_bytes", &P::sent_bytes},
      {"delivered_bytes", &P::delivered_bytes},
      {"dropped_bytes", &P::dropped_bytes},
      {"in_flight_bytes", &P::in_flight_bytes},
  };
  return columns;
}

std::span<const Column<OccupancySample>> occupancy_columns() {
  using S = OccupancySample;
  static const Column<S> columns[] = {
      {"time_s", seconds(&S::time_ns)}, {"rack", &S::rack},   {"max_bytes", &S::max_bytes},
      {"last_bytes", &S::last_bytes},   {"drops", &S::drops},
  };
  return columns;
}

std::span<const Column<FlowRecord>> flow_columns() {
  using F = FlowRecord;
  static const Column<F> columns[] = {
      {"readout", &F::readout},
      {"node", &F::node},
      {"fragments", &F::fragments},
      {"segments_sent", &F::segments_sent},
      {"segments_dropped", &F::segments_dropped},
      {"retransmits", &F::retransmits},
      {"fast_recoveries", &F::fast_recoveries},
      {"tail_loss_probes", &F::probes},
      {"timeouts", &F::timeouts},
      {"window_segments", &F::window},
      {"slow_start_threshold_segments", &F::slow_start_threshold},
      {"smoothed_rtt_us", [](const F& f) { return static_cast<double>(f.smoothed_rtt_ns) * 1e-3; }},
  };
  return columns;
}

}  // namespace rodeo::network
