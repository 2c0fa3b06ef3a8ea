#include "network/simulator/switch_memory.h"

namespace rodeo::network {

template <bool kTrain>
SwitchMemory<kTrain>::SwitchMemory(const SwitchBuffer& buffer, const PacketSizes& sizes, LinkTime in, LinkTime out,
                                   std::uint32_t ports, std::uint32_t inputs)
    : sizes_(sizes),
      in_(in),
      out_(out),
      cut_through_(out.of(1 << 20) >= in.of(1 << 20)),
      limited_(buffer.shared_bytes.has_value() || buffer.port_limit_bytes.has_value()),
      has_shared_limit_(buffer.shared_bytes.has_value()),
      virtual_output_queues_(buffer.virtual_output_queues),
      shared_bytes_(buffer.shared_bytes.value_or(0)),
      dedicated_(has_shared_limit_ ? buffer.dedicated_bytes_per_port : 0),
      alpha_(static_cast<std::uint64_t>(buffer.dynamic_threshold * 0x1p20)),
      port_limit_(buffer.port_limit_bytes.value_or(UINT64_MAX)),
      ports_(ports) {
  cells_count_ = buffer.cell_bytes != 0;
  by_time_ = !virtual_output_queues_;
  if (!virtual_output_queues_) return;
  for (Port& port : ports_) {
    port.inputs = std::vector<Ring<Item>>(inputs);
    port.input_used.resize(inputs);
  }
}

template <bool kTrain>
void SwitchMemory<kTrain>::leave(Port& port, const Item& item) {
  if (item.word.last_payload() == 0) return;  // a ghost needs no memory
  const Occupancy bytes = sizes_.of(item.count(), item.word.last_payload());
  sum_.frames -= bytes.frames;
  sum_.payload -= bytes.payload;
  sum_.cells -= bytes.cells;
  shared_used_ -= shared_part(port.used) - shared_part(port.used - bytes.cells);
  port.used -= bytes.cells;
}

template <bool kTrain>
void SwitchMemory<kTrain>::release(Port& port, Picoseconds now) {
  while (port.released != port.queue.end() && port.queue.at(port.released).time <= now) {
    leave(port, port.queue.at(port.released));
    ++port.released;
  }
}

/// The memory that the leaving packet has already freed, rounded up.
template <bool kTrain>
Occupancy SwitchMemory<kTrain>::part_sent(const Port& port, Picoseconds now) const {
  if (port.released == port.queue.end()) return {};
  const Item& item = port.queue.at(port.released);
  if (item.word.last_payload() == 0) return {};
  const Occupancy bytes = sizes_.of(item.count(), item.word.last_payload());
  const Picoseconds whole = out_.of(bytes.frames);
  const Picoseconds left = item.time - now;
  if (left >= whole) return {};
  const Picoseconds sent = whole - left;
  const auto share = [&](std::uint64_t of) {
    if (((of | sent) >> 31) == 0) return (of * sent + whole - 1) / whole;
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(of) * sent + whole - 1) / whole);
  };
  const std::uint64_t frames = share(bytes.frames);
  return {frames, share(bytes.payload), bytes.cells == bytes.frames ? frames : share(bytes.cells)};
}

template <bool kTrain>
Occupancy SwitchMemory<kTrain>::occupancy(Picoseconds now) {
  Occupancy sent;
  for (Port& port : ports_) {
    if (virtual_output_queues_) serve(static_cast<std::uint32_t>(&port - ports_.data()), now);
    release(port, now);
    const Occupancy part = part_sent(port, now);
    sent.frames += part.frames;
    sent.payload += part.payload;
    sent.cells += part.cells;
  }
  return {sum_.frames - sent.frames, sum_.payload - sent.payload, sum_.cells - sent.cells};
}

template <bool kTrain>
unsigned __int128 SwitchMemory<kTrain>::time_to_send(Picoseconds now) {
  if (now >= first_done_) {
    first_done_ = kNever;
    for (Port& port : ports_) {
      if (!port.sending) continue;
      if (port.last <= now) {
        port.sending = false;
        last_sum_ -= port.last;
        --sending_;
      } else {
        first_done_ = std::min(first_done_, port.last);
      }
    }
  }
  return last_sum_ - static_cast<unsigned __int128>(sending_) * now;
}

/// Notes that the port will send until `last`. time_to_send() has already removed the ports that were done before `now`.
template <bool kTrain>
void SwitchMemory<kTrain>::extend(Port& port, Picoseconds last) {
  if (port.sending) {
    last_sum_ += last - port.last;
  } else {
    port.sending = true;
    ++sending_;
    last_sum_ += last;
    first_done_ = std::min(first_done_, last);
  }
  port.last = last;
}

/// Notes that, with the packet arriving now, the ports need this time to send everything.
template <bool kTrain>
void SwitchMemory<kTrain>::note_maximum(Picoseconds now, unsigned __int128 time) {
  if (watching_ && time > interval_most_) interval_most_ = time;
  if (time <= most_to_send_) {
    update_maximum();
    return;
  }
  most_to_send_ = time;
  maximum_time_ = now;
  settled_ = false;
}

/// Computes the contents at the maximum while all packets are still in the memory. While the maximum rises with each
/// arrival, only the last one is computed.
template <bool kTrain>
void SwitchMemory<kTrain>::update_maximum() {
  if (settled_) return;
  settled_ = true;
  maximum_.frames = out_.bytes_in(most_to_send_);
  maximum_.payload = occupancy(maximum_time_).payload;
  if (!cells_count_) maximum_.cells = maximum_.frames;
}

template <bool kTrain>
void SwitchMemory<kTrain>::measure(Picoseconds now) {
  // Try the cheap test first: without packets that have left completely, the bound may be low enough.
  for (Port& port : ports_) release(port, now);
  const std::uint64_t frames_to_beat = watching_ ? interval_maximum_ : maximum_.frames;
  if ((by_time_ || sum_.frames <= frames_to_beat) && sum_.cells <= maximum_.cells) return;
  update_maximum();
  const Occupancy there = occupancy(now);
  maximum_.cells = std::max(maximum_.cells, there.cells);
  if (by_time_) return;
  interval_maximum_ = std::max(interval_maximum_, there.frames);
  if (there.frames > maximum_.frames) {
    maximum_.frames = there.frames;
    maximum_.payload = there.payload;
    maximum_time_ = now;
  }
}

template <bool kTrain>
std::uint64_t SwitchMemory<kTrain>::reset_interval_maximum(Picoseconds now) {
  update_maximum();
  std::uint64_t largest = interval_maximum_;
  if (by_time_) {
    largest = out_.bytes_in(interval_most_);
    interval_most_ = time_to_send(now);
    return largest;
  }
  interval_maximum_ = occupancy(now).frames;
  return std::max(largest, interval_maximum_);
}

template <bool kTrain>
typename SwitchMemory<kTrain>::Verdict SwitchMemory<kTrain>::judge(std::uint64_t charge, std::uint64_t port_used,
                                                                   std::uint64_t shared_used,
                                                                   std::uint64_t input_used) const {
  const std::uint64_t limited_use = virtual_output_queues_ ? input_used : port_used;
  if (limited_use + charge > port_limit_) return Verdict::port_limit;
  if (!has_shared_limit_) return Verdict::fits;
  const std::uint64_t before = shared_part(port_used);
  const std::uint64_t after = shared_part(port_used + charge);
  if (after == 0) return Verdict::fits;
  if (shared_used + (after - before) > shared_bytes_) return Verdict::pool_full;
  if (alpha_ != 0) {
    const std::uint64_t free = shared_bytes_ - shared_used;
    if (after > static_cast<std::uint64_t>((static_cast<unsigned __int128>(free) * alpha_) >> 20)) return Verdict::threshold;
  }
  return Verdict::fits;
}

template <bool kTrain>
std::uint64_t SwitchMemory<kTrain>::exact_shared(Picoseconds now, std::uint32_t asked, std::uint64_t& asked_used) {
  update_maximum();
  std::uint64_t shared = 0;
  for (std::uint32_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[i];
    if (virtual_output_queues_) serve(i, now);
    release(port, now);
    const std::uint64_t used = port.used - part_sent(port, now).cells;
    shared += shared_part(used);
    if (i == asked) asked_used = used;
  }
  return shared;
}

template <bool kTrain>
bool SwitchMemory<kTrain>::arrive(Picoseconds now, std::uint32_t number, std::uint32_t input, PacketWord word,
                                  std::uint32_t count, bool& split) {
  Port& port = ports_[number];
  const Occupancy bytes = sizes_.of(count, word.last_payload());
  if (limited_) {
    const auto input_used = [&] { return virtual_output_queues_ ? port.input_used[input] : 0; };
    Verdict verdict = judge(bytes.cells, port.used, shared_used_, input_used());
    if (verdict != Verdict::fits) {
      if (count > 1) {
        split = true;
        return false;
      }
      std::uint64_t port_used = 0;
      std::uint64_t shared = 0;
      if (by_time_ && !cells_count_ && dedicated_ == 0) {
        shared = out_.bytes_in(time_to_send(now));
        port_used = port.last > now ? out_.bytes_in(port.last - now) : 0;
      } else {
        shared = exact_shared(now, number, port_used);
      }
      verdict = judge(bytes.cells, port_used, shared, input_used());
    }
    if (verdict != Verdict::fits) {
      ++(verdict == Verdict::pool_full   ? drops_.pool_full
         : verdict == Verdict::threshold ? drops_.threshold
                                         : drops_.port_limit);
      return false;
    }
  }
  if (virtual_output_queues_) {
    serve(number, now);
    port.inputs[input].push(Item::of(now, word, count));
    port.input_used[input] += bytes.cells;
    ++port.waiting;
  } else {
    const Picoseconds begin = cut_through_ ? now - in_.of(bytes.frames) : now;
    const Picoseconds departure = std::max(port.last, begin) + out_.of(bytes.frames);
    Picoseconds last_departure = departure;
    if (kTrain && !cut_through_ && count > 1) {
      // The port is faster than the link: it sends the last packet when this packet has arrived, and the others earlier.
      const Picoseconds last = out_.of(word.last_payload() + sizes_.header);
      const Picoseconds start = now - std::min<Picoseconds>(now, in_.of(bytes.frames));
      last_departure = std::max(now + last, std::max(port.last, start) + out_.of(bytes.frames));
    }
    note_maximum(now, time_to_send(now) + last_departure - (port.sending ? port.last : now));
    extend(port, last_departure);
    port.queue.push(Item::of(port.last, word, count));
  }
  shared_used_ += shared_part(port.used + bytes.cells) - shared_part(port.used);
  port.used += bytes.cells;
  sum_.frames += bytes.frames;
  sum_.payload += bytes.payload;
  sum_.cells += bytes.cells;
  const std::uint64_t frames_to_beat = watching_ ? interval_maximum_ : maximum_.frames;
  if ((!by_time_ && sum_.frames > frames_to_beat) || (cells_count_ && sum_.cells > maximum_.cells)) measure(now);
  return true;
}

template <bool kTrain>
void SwitchMemory<kTrain>::arrive_ghost(Picoseconds now, std::uint32_t number, PacketWord word, std::uint32_t count) {
  Port& port = ports_[number];
  const PacketWord ghost = PacketWord::of(word.flow(), word.number_near(0), 0);
  if (virtual_output_queues_) serve(number, now);
  port.queue.push(Item::of(std::max(port.last, now), ghost, count));
}

template <bool kTrain>
typename SwitchMemory<kTrain>::Item SwitchMemory<kTrain>::pop(std::uint32_t number) {
  update_maximum();
  Port& port = ports_[number];
  if (port.released == port.queue.first()) {
    leave(port, port.queue.front());
    ++port.released;
  }
  const Item item = port.queue.front();
  port.queue.pop();
  return item;
}

/// Inputs take turns, packet by packet.
template <bool kTrain>
void SwitchMemory<kTrain>::serve(std::uint32_t number, Picoseconds end) {
  Port& port = ports_[number];
  const auto inputs = static_cast<std::uint32_t>(port.inputs.size());
  while (port.waiting > 0) {
    Picoseconds first = kNever;
    for (const Ring<Item>& queue : port.inputs) {
      if (!queue.empty()) first = std::min(first, queue.front().time);
    }
    const Picoseconds start = std::max(port.last, first);
    if (start >= end) return;
    std::uint32_t input = port.turn;
    while (port.inputs[input].empty() || port.inputs[input].front().time > start)
      input = input + 1 == inputs ? 0 : input + 1;
    port.turn = input + 1 == inputs ? 0 : input + 1;
    const Item item = port.inputs[input].front();
    port.inputs[input].pop();
    --port.waiting;
    const Occupancy bytes = sizes_.of(item.count(), item.word.last_payload());
    port.input_used[input] -= bytes.cells;
    port.last = start + out_.of(bytes.frames);
    port.queue.push(Item::of(port.last, item.word, item.count()));
  }
}

template class SwitchMemory<false>;
template class SwitchMemory<true>;

}  // namespace rodeo::network
