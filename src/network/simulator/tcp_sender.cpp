#include "network/simulator/tcp_sender.h"

#include <algorithm>

namespace rodeo::network {

void TcpSender::start(const TcpParameters& tcp, std::uint32_t window, Picoseconds round_trip) {
  congestion_.window = window;
  variation_ = deviation_max_ = tcp.rto_min;
  if (round_trip == 0) return;
  sample_rtt(tcp, round_trip);
  rtt_min_ = round_trip;
}

Picoseconds TcpSender::timeout(const TcpParameters& tcp) const {
  Picoseconds rto = std::min(srtt8_ == 0 ? tcp.rto_initial : (srtt8_ >> 3) + variation_, tcp.rto_max);
  for (unsigned i = 0; i < backoff_ && rto < tcp.rto_max; ++i) rto = std::min(rto * 2, tcp.rto_max);
  return rto;
}

void TcpSender::update_busy() {
  busy_ = state_ != State::open || sacked_ != 0 || lost_ != 0 || retransmitted_ != 0 || probing_;
}

void TcpSender::emit_new(Picoseconds now, std::uint32_t count, SegmentRuns& runs) {
  if (!detailed_ && batches_ == kBatches && batch_[batches_ - 1].sent != now) switch_to_segments();
  if (detailed_) {
    reserve(nxt_ - una_ + count);
    const std::uint64_t sent = now << kTimeShift;
    for (std::uint32_t i = 0; i < count; ++i) segment(nxt_ + i) = sent;
  } else {
    if (batches_ == 0 || batch_[batches_ - 1].sent != now) batch_[batches_++].sent = now;
    batch_[batches_ - 1].end = nxt_ + count;
  }
  runs.push_back({nxt_, count, false});
  nxt_ += count;
  counts_.sent += count;
  last_sent_ = now;
}

/// Switches from batches to segments: a segment was lost, or the window releases a few segments at a time.
void TcpSender::switch_to_segments() {
  if (detailed_) return;
  detailed_ = true;
  std::uint32_t s = una_;
  const std::uint32_t all = nxt_;
  nxt_ = una_;  // there is nothing to convert
  reserve(all - una_);
  nxt_ = all;
  for (std::uint32_t b = 0; b < batches_; ++b) {
    for (; s != batch_[b].end; ++s) segment(s) = batch_[b].sent << kTimeShift;
  }
  batches_ = 0;
}

Picoseconds TcpSender::sent_time(std::uint32_t number) const {
  std::uint32_t b = 0;
  while (!before(number, batch_[b].end)) ++b;
  return batch_[b].sent;
}

void TcpSender::retransmit(Picoseconds now, std::uint32_t number, SegmentRuns& runs) {
  std::uint64_t& one = segment(number);
  if ((one & kRetransmitted) == 0) ++retransmitted_;
  one = now << kTimeShift | (one & (kLost | kSacked)) | kRetransmitted | kTwice;
  if (!twice_ || before(twice_end_, number + 1)) twice_end_ = number + 1;
  twice_ = true;
  if (!runs.empty() && runs.back().retransmission && runs.back().first + runs.back().count == number) {
    ++runs.back().count;
  } else {
    runs.push_back({number, 1, true});
  }
  ++counts_.sent;
  ++counts_.retransmits;
  ++reduction_sent_;
  last_sent_ = now;
}

/// After an idle time-out the window is out of date (RFC 2861): halves it for each time-out.
void TcpSender::restart_after_idle(const TcpParameters& tcp, Picoseconds now) {
  const Picoseconds idle = now - last_sent_;
  const bool maybe = idle > std::min(tcp.rto_min, tcp.rto_initial);  // no time-out is shorter
  if (const Picoseconds rto = maybe ? timeout(tcp) : kNever; tcp.slow_start_after_idle && idle > rto) {
    Congestion& c = congestion_;
    const std::uint32_t restart = std::min(tcp.initial_window, c.window);
    c.threshold = std::max(c.threshold, (c.window >> 1) + (c.window >> 2));
    Picoseconds left = idle;
    while (left > rto && c.window > restart) {
      left -= rto;
      c.window >>= 1;
    }
    c.window = std::max(c.window, restart);
    c.clear_count();
    window_limited_ = false;
    max_out_ = 0;
  }
  congestion_.on_restart(tcp, now, idle);
}

void TcpSender::write(const TcpParameters& tcp, Picoseconds now, std::uint32_t segments, SegmentRuns& runs) {
  if (tcp.control == CongestionControl::none) {
    runs.push_back({nxt_, segments, false});
    una_ = nxt_ = end_ = nxt_ + segments;
    counts_.sent += segments;
    return;
  }
  if (nxt_ == una_ && nxt_ == end_ && counts_.sent != 0) restart_after_idle(tcp, now);
  end_ += segments;
  const std::uint32_t had = nxt_;
  send(tcp, now, runs);
  if (nxt_ != had) set_timer(tcp, now);
}

/// Sends lost segments first, then new ones, as far as the window allows.
void TcpSender::send(const TcpParameters& tcp, Picoseconds now, SegmentRuns& runs) {
  if (lost_ > 0) {
    for (std::uint32_t s = una_; s != nxt_ && in_flight() < congestion_.window; ++s) {
      if ((segment(s) & (kSacked | kLost | kRetransmitted)) == kLost) retransmit(now, s, runs);
    }
  }
  const std::uint32_t flight = in_flight();
  std::uint32_t count = 0;
  if (end_ != nxt_ && flight < congestion_.window && nxt_ - una_ < tcp.window_limit) {
    count = std::min({end_ - nxt_, congestion_.window - flight, tcp.window_limit - (nxt_ - una_)});
    emit_new(now, count, runs);
    if (state_ != State::open) reduction_sent_ += count;
  }
  // The window counts as the limit if it limited sending within the last round trip.
  const bool limited = end_ != nxt_ && flight + count >= congestion_.window;
  const std::uint32_t out = nxt_ - una_;
  if (!before(una_, usage_end_) || limited || (!window_limited_ && out > max_out_)) {
    window_limited_ = limited;
    max_out_ = out;
    usage_end_ = nxt_;
  }
}

void TcpSender::sample_rtt(const TcpParameters& tcp, Picoseconds rtt) {
  rtt = std::max<Picoseconds>(rtt, 1);
  if (srtt8_ == 0) {
    srtt8_ = rtt << 3;
    deviation4_ = rtt << 1;
    variation_ = deviation_max_ = std::max(deviation4_, tcp.rto_min);
    rtt_end_ = nxt_;
    return;
  }
  auto error = static_cast<std::int64_t>(rtt) - static_cast<std::int64_t>(srtt8_ >> 3);
  srtt8_ += static_cast<std::uint64_t>(error);
  if (error < 0) {
    error = -error - static_cast<std::int64_t>(deviation4_ >> 2);
    if (error > 0) error >>= 3;  // a shorter round trip must not make the time-out longer quickly
  } else {
    error -= static_cast<std::int64_t>(deviation4_ >> 2);
  }
  deviation4_ += static_cast<std::uint64_t>(error);
  if (deviation4_ > deviation_max_) {
    deviation_max_ = deviation4_;
    variation_ = std::max(variation_, deviation_max_);
  }
  if (before(rtt_end_, una_)) {
    if (deviation_max_ < variation_) variation_ -= (variation_ - deviation_max_) >> 2;
    rtt_end_ = nxt_;
    deviation_max_ = tcp.rto_min;
  }
}

/// Remembers the segment that was sent last among those that arrived (RFC 8985, section 6.2, step 2).
void TcpSender::note_delivered(const TcpParameters&, Picoseconds now, std::uint32_t number, std::uint64_t one) {
  const Picoseconds sent = one >> kTimeShift;
  const Picoseconds rtt = now - sent;
  if ((one & kTwice) != 0 && rtt < rtt_min_) return;  // the first copy arrived
  if (sent > rack_sent_ || (sent == rack_sent_ && before(rack_number_, number + 1))) {
    rack_sent_ = sent;
    rack_number_ = number + 1;
    rack_rtt_ = rtt;
  }
}

/// RFC 8985, section 6.2, step 5: a segment is lost if a segment sent later has arrived and enough time has passed.
void TcpSender::mark_lost(Picoseconds now) {
  const Picoseconds window = sacked_ >= 3 || state_ != State::open ? 0 : std::min(rtt_min_ / 4, srtt8_ >> 3);
  reordering_wait_ = 0;
  for (std::uint32_t s = una_; s != nxt_; ++s) {
    std::uint64_t& one = segment(s);
    if ((one & kSacked) != 0 || (one & (kLost | kRetransmitted)) == kLost) continue;
    const Picoseconds sent = one >> kTimeShift;
    if (sent > rack_sent_ || (sent == rack_sent_ && !before(s, rack_number_))) continue;
    const Picoseconds due = sent + rack_rtt_ + window;
    if (due > now) {
      reordering_wait_ = std::max(reordering_wait_, due - now);
      continue;
    }
    if ((one & kRetransmitted) != 0) --retransmitted_;
    if ((one & kLost) == 0) ++lost_;
    one = (one & ~kRetransmitted) | kLost;
  }
}

void TcpSender::enter_recovery(const TcpParameters& tcp) {
  prior_window_ = congestion_.window;
  congestion_.threshold = congestion_.threshold_after_loss(tcp);
  congestion_.clear_count();
  reduction_delivered_ = reduction_sent_ = 0;
  high_ = nxt_;
  state_ = State::recovery;
  probing_ = false;
  ++counts_.recoveries;
}

/// Proportional rate reduction (RFC 6937): arrivals release a share of new segments until the window is at the threshold.
void TcpSender::reduce_window(std::uint32_t delivered, bool advanced, bool more_lost) {
  const std::uint32_t flight = in_flight();
  const std::uint32_t threshold = congestion_.threshold;
  reduction_delivered_ += delivered;
  std::int64_t count = 0;
  if (flight > threshold) {
    const std::uint64_t share =
        (static_cast<std::uint64_t>(threshold) * reduction_delivered_ + prior_window_ - 1) / std::max(prior_window_, 1u);
    count = static_cast<std::int64_t>(share) - reduction_sent_;
  } else {
    count = std::max<std::int64_t>(static_cast<std::int64_t>(reduction_delivered_) - reduction_sent_, delivered);
    if (advanced && !more_lost) ++count;
    count = std::min<std::int64_t>(threshold - flight, count);
  }
  count = std::max<std::int64_t>(count, reduction_sent_ == 0 ? 1 : 0);
  congestion_.window = flight + static_cast<std::uint32_t>(count);
}

/// Handles an acknowledgement of the next segments in order, without any loss.
void TcpSender::acknowledge_in_order(const TcpParameters& tcp, Picoseconds now, std::uint32_t cumulative,
                                     std::uint32_t at_once) {
  const std::uint32_t acknowledged = cumulative - una_;
  const Picoseconds oldest = now - sent_time(una_);
  const Picoseconds newest = now - sent_time(cumulative - 1);
  rack_sent_ = now - newest;
  rack_number_ = cumulative;
  rack_rtt_ = newest;
  una_ = cumulative;
  backoff_ = 0;
  std::uint32_t gone = 0;
  while (gone < batches_ && !before(cumulative, batch_[gone].end)) ++gone;
  if (gone > 0) {
    for (std::uint32_t b = gone; b < batches_; ++b) batch_[b - gone] = batch_[b];
    batches_ -= gone;
  }
  sample_rtt(tcp, oldest);
  rtt_min_ = std::min(rtt_min_, newest);
  congestion_.on_rtt(tcp, now, newest, una_, nxt_);
  for (std::uint32_t left = acknowledged; left > 0;) {
    const bool limited = congestion_.in_slow_start() ? congestion_.window < 2 * max_out_ : window_limited_;
    if (!limited) return;
    const std::uint32_t segments = std::min(left, at_once);
    congestion_.on_acknowledged(tcp, now, segments, una_, nxt_);
    left -= segments;
  }
}

void TcpSender::acknowledge_train(const TcpParameters& tcp, Picoseconds now, std::uint32_t cumulative) {
  if (!before(una_, cumulative)) return;
  if (detailed_) {
    SegmentRuns none;
    Acknowledgement ack;
    ack.cumulative = cumulative;
    acknowledge(tcp, now, ack, none);
    return;
  }
  acknowledge_in_order(tcp, now, cumulative, tcp.segments_per_ack);
  set_timer(tcp, now);
}

void TcpSender::acknowledge(const TcpParameters& tcp, Picoseconds now, const Acknowledgement& ack, SegmentRuns& runs) {
  if (before(nxt_, ack.cumulative)) return;  // this number was never sent
  if (!detailed_ && !busy_ && ack.blocks == 0) {
    if (!before(una_, ack.cumulative)) return;
    acknowledge_in_order(tcp, now, ack.cumulative, UINT32_MAX);
    if (end_ != nxt_) send(tcp, now, runs);
    set_timer(tcp, now);
    return;
  }
  switch_to_segments();
  const bool was_clean = sacked_ == 0 && lost_ == 0 && retransmitted_ == 0;
  const std::uint32_t lost_before = lost_;
  std::uint32_t delivered = 0;
  Picoseconds oldest_sacked = kNever;  // round trip of the segment sent first among those newly reported

  for (std::uint32_t b = 0; b < ack.blocks; ++b) {
    std::uint32_t s = before(ack.block[b].begin, una_) ? una_ : ack.block[b].begin;
    for (; before(s, ack.block[b].end) && before(s, nxt_); ++s) {
      std::uint64_t& one = segment(s);
      if ((one & kSacked) != 0) continue;
      if ((one & kLost) != 0) --lost_;
      if ((one & kRetransmitted) != 0) --retransmitted_;
      note_delivered(tcp, now, s, one);
      if ((one & kTwice) == 0) {
        const Picoseconds rtt = now - (one >> kTimeShift);
        rtt_min_ = std::min(rtt_min_, rtt);
        oldest_sacked = oldest_sacked == kNever ? rtt : std::max(oldest_sacked, rtt);
      }
      one = (one & ~(kLost | kRetransmitted)) | kSacked;
      ++sacked_;
      ++delivered;
    }
  }

  const std::uint32_t acknowledged = before(una_, ack.cumulative) ? ack.cumulative - una_ : 0;
  if (acknowledged > 0) {
    Picoseconds oldest = kNever;
    Picoseconds newest = kNever;
    if (was_clean && sacked_ == 0 && (!twice_ || !before(una_, twice_end_))) {
      twice_ = false;
      oldest = now - (segment(una_) >> kTimeShift);
      newest = now - (segment(ack.cumulative - 1) >> kTimeShift);
      rack_sent_ = now - newest;
      rack_number_ = ack.cumulative;
      rack_rtt_ = newest;
      delivered += acknowledged;
    } else {
      for (std::uint32_t s = una_; s != ack.cumulative; ++s) {
        const std::uint64_t one = segment(s);
        if ((one & kSacked) != 0) {
          --sacked_;
        } else {
          if ((one & kLost) != 0) --lost_;
          if ((one & kRetransmitted) != 0) --retransmitted_;
          note_delivered(tcp, now, s, one);
          ++delivered;
          if ((one & kTwice) == 0) {
            newest = now - (one >> kTimeShift);
            if (oldest == kNever) oldest = newest;
          }
        }
      }
    }
    una_ = ack.cumulative;
    backoff_ = 0;
    if (oldest != kNever) {
      sample_rtt(tcp, oldest);
      rtt_min_ = std::min(rtt_min_, newest);
      congestion_.on_rtt(tcp, now, newest, una_, nxt_);
      oldest_sacked = kNever;
    }
  }
  if (oldest_sacked != kNever) sample_rtt(tcp, oldest_sacked);

  if (probing_ && !before(ack.cumulative, probe_high_)) {
    if (!probe_again_ || ack.duplicate || acknowledged == 0) {
      probing_ = false;
    } else if (before(probe_high_, ack.cumulative)) {
      // The probe repaired a loss that had no other sign. This loss is a sign of congestion, too.
      probing_ = false;
      if (state_ == State::open) {
        congestion_.threshold = congestion_.threshold_after_loss(tcp);
        congestion_.window = std::min(congestion_.window, congestion_.threshold);
        congestion_.clear_count();
      }
    }
  }

  if (sacked_ != 0 || lost_ != 0 || retransmitted_ != 0) mark_lost(now);

  if (state_ != State::open && !before(una_, high_)) {
    if (state_ == State::recovery) congestion_.window = congestion_.threshold;
    state_ = State::open;
  }
  if (state_ == State::open && lost_ > 0) enter_recovery(tcp);

  if (state_ == State::recovery) {
    reduce_window(delivered, acknowledged > 0, lost_ > lost_before);
  } else if (acknowledged > 0) {
    const bool limited = congestion_.in_slow_start() ? congestion_.window < 2 * max_out_ : window_limited_;
    if (limited) congestion_.on_acknowledged(tcp, now, delivered, una_, nxt_);
  }

  const std::uint32_t had = nxt_;
  if (lost_ > 0 || end_ != nxt_) send(tcp, now, runs);
  if (acknowledged > 0 || delivered > 0 || nxt_ != had || reordering_wait_ != 0) set_timer(tcp, now);
  update_busy();
  if (una_ == nxt_ && !busy_) {
    detailed_ = false;
    twice_ = false;
  }
}

void TcpSender::set_timer(const TcpParameters& tcp, Picoseconds now) {
  if (una_ == nxt_) {
    deadline_ = kNever;
    timer_ = Timer::none;
    return;
  }
  if (reordering_wait_ != 0) {
    deadline_ = tcp.expiry(now, reordering_wait_ + tcp.probe_min);
    timer_ = Timer::reordering;
    return;
  }
  const Picoseconds rto = timeout(tcp);
  deadline_ = tcp.expiry(now, rto);
  timer_ = Timer::timeout;
  if (tcp.tail_loss_probe && state_ == State::open && sacked_ == 0 && lost_ == 0 && !probing_ && backoff_ == 0) {
    // A lone segment's acknowledgement may be delayed at the other end.
    const Picoseconds slack = nxt_ - una_ == 1 ? tcp.rto_min : tcp.probe_min;
    const Picoseconds wait = srtt8_ == 0 ? tcp.rto_initial : (srtt8_ >> 2) + slack;
    // If the time-out is earlier, the probe takes its place, and the time-out follows the probe (RFC 8985, section 7.2).
    deadline_ = tcp.expiry(now, std::min(wait, rto));
    timer_ = Timer::probe;
  }
}

void TcpSender::expire(const TcpParameters& tcp, Picoseconds now, SegmentRuns& runs) {
  const Timer timer = timer_;
  timer_ = Timer::none;
  deadline_ = kNever;
  if (una_ == nxt_) return;
  switch_to_segments();
  if (timer == Timer::reordering) {
    mark_lost(now);
    if (state_ == State::open && lost_ > 0) {
      enter_recovery(tcp);
      reduce_window(0, false, true);
    }
    send(tcp, now, runs);
  } else if (timer == Timer::probe) {
    ++counts_.probes;
    probing_ = true;
    if (end_ != nxt_ && nxt_ - una_ < tcp.window_limit) {
      probe_again_ = false;
      emit_new(now, 1, runs);
    } else {
      probe_again_ = true;
      retransmit(now, nxt_ - 1, runs);
    }
    probe_high_ = nxt_;
  } else if (timer == Timer::timeout) {
    ++counts_.timeouts;
    if (state_ == State::open || !before(una_, high_) || (state_ == State::loss && backoff_ == 0)) {
      prior_window_ = congestion_.window;
      congestion_.threshold = congestion_.threshold_after_loss(tcp);
    }
    congestion_.on_timeout();
    for (std::uint32_t s = una_; s != nxt_; ++s) {
      std::uint64_t& one = segment(s);
      if ((one & kSacked) != 0) continue;
      if ((one & kLost) == 0) ++lost_;
      one = (one & ~kRetransmitted) | kLost;
    }
    retransmitted_ = 0;
    congestion_.window = 1;
    congestion_.clear_count();
    state_ = State::loss;
    high_ = nxt_;
    probing_ = false;
    if (backoff_ < 30) ++backoff_;
    send(tcp, now, runs);
  }
  set_timer(tcp, now);
  update_busy();
}

}  // namespace rodeo::network
