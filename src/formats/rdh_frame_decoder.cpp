#include "formats/rdh_frame_decoder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

namespace rodeo::formats {
namespace {

using enum RdhFrameCounter;

constexpr std::size_t kRunsPerCall = 256;

}  // namespace

RdhFrameDecoder::RdhFrameDecoder(const Options& options, std::span<const std::uint8_t> links)
    : options_(options),
      numbers_(links.begin(), links.end()),
      links_(links.size()),
      parked_(std::make_unique_for_overwrite<std::byte[]>(links.size() * options.max_chunk_bytes)) {
  if (options.orbits_per_frame == 0 || options.max_chunk_bytes == 0) {
    throw SetupError(Error{"formats.rdh_options", "a frame cannot have zero orbits or zero bytes", "", "give at least 1"});
  }
  index_of_link_.fill(kUnmapped);
  if (options.parts != nullptr) open_parts_.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (index_of_link_[links[i]] != kUnmapped) {
      throw SetupError(
          Error{"formats.rdh_options", fmt::format("link {} is named twice", links[i]), "", "name each link once"});
    }
    index_of_link_[links[i]] = static_cast<LinkIndex>(i);
  }
}

void RdhFrameDecoder::want(LinkIndex link, bool wanted) {
  if ((index_of_link_[numbers_[link]] == link) == wanted) return;
  index_of_link_[numbers_[link]] = wanted ? link : kUnmapped;
  links_[link] = {};
  if (options_.parts != nullptr) open_parts_[link].clear();
}

DecodeBuffer::Capacity RdhFrameDecoder::room() const {
  return {.runs = kRunsPerCall + 2, .entries = 0, .carry_bytes = 2 * std::size_t{options_.max_chunk_bytes}};
}

DecodeBuffer::Capacity RdhFrameDecoder::finish_room() const {
  return {.runs = links_.size(), .entries = 0, .carry_bytes = links_.size() * options_.max_chunk_bytes};
}

// True if no heartbeat frame of a time frame is missing before a page that begins one. Before a rule is known, any orbit may
// be the next one. Where triggers change the step, the link's own packet counter decides.
bool RdhFrameDecoder::may_follow(const Link& link, const Rdh& page) const {
  const std::uint32_t step = page.orbit() - link.orbit;
  if (step == (orbits_.steps() == 0 ? 1 : orbits_.step().value_or(step))) return true;
  return orbits_.step() && !orbits_.strict() && packets_.own() && page.packet_counter() == link.next_packet;
}

// The place of a page in the order of its joined link. Page numbers, stop bits and orbits decide: a packet counter may count
// the pages of all links.
RdhFrameDecoder::Order RdhFrameDecoder::order_of(const Link& link, const Rdh& page, std::uint32_t frame) const {
  const std::uint32_t step = page.orbit() - link.orbit;
  const bool begins = link.stopped && page.page_number() == 0;
  if (link.open && frame == link.frame && !(options_.orbits_per_frame == 1 && page.page_number() == 0)) {
    if (step == 0) return !link.stopped && page.page_number() == link.page_number + 1 ? Order::next : Order::gap;
    return begins && may_follow(link, page) ? Order::next : Order::gap;
  }
  if (!begins) return Order::gap;
  if (options_.orbits_per_frame == 1) return Order::other_frame;
  // A time frame without heartbeat frames in its first or last orbits is complete if the rule has such a step.
  return may_follow(link, page) ? Order::other_frame : Order::gap;
}

// Learns the rules of the endpoint from a page, and counts the pages that it shows to be missing.
void RdhFrameDecoder::learn_rules(const Link& link, const Rdh& page, Order order) {
  const std::uint32_t step = page.orbit() - link.orbit;
  const bool same_frame = step == 0 && !link.stopped;
  const bool begins = link.stopped && page.page_number() == 0;
  const bool packet_follows = page.packet_counter() == link.next_packet;
  if (same_frame && order == Order::next) {
    packets_.within_frame(packet_follows);
    return;
  }
  if (begins) {
    packets_.between_frames(packet_follows);
    if (options_.orbits_per_frame != 1 && step != 0 && step < UINT32_C(1) << 31) orbits_.add(step);
  }
  if (same_frame && page.page_number() > link.page_number) {
    counters_.add(lost_pages, page.page_number() - link.page_number - 1);
  } else if (!packet_follows) {
    ++doubtful_gaps_;
    doubtful_pages_ += static_cast<std::uint8_t>(page.packet_counter() - link.next_packet);
  }
  if (packets_.settled()) count_packet_gaps();
  if (packets_.certainly_shared()) doubtful_gaps_ = doubtful_pages_ = 0;
}

void RdhFrameDecoder::count_packet_gaps() {
  if (doubtful_gaps_ == 0) return;
  counters_.add(packet_gaps, std::exchange(doubtful_gaps_, 0));
  counters_.add(lost_pages, std::exchange(doubtful_pages_, 0));
}

// True if a page belongs to a frame whose begin was seen, or is its begin. `follows`: it is the next page of its link.
bool RdhFrameDecoder::start_frame(Link& link, const Rdh& page, bool follows) {
  const std::uint32_t orbit = page.orbit();
  if (!link.joined) {
    const bool time_frame = (page.trigger_type() & rdh_trigger::kTimeFrame) != 0;
    const bool begins = page.page_number() == 0 && (options_.orbits_per_frame == 1 || time_frame);
    if (!begins) {
      counters_.add(before_join);
      return false;
    }
    link.joined = true;
    link.phase = orbit % options_.orbits_per_frame;
  }
  link.open = true;
  link.status = chunk_status::kOk;
  link.frame = (orbit - link.phase) / options_.orbits_per_frame;
  link.parked = link.parked_end = 0;
  link.length = link.length_end = 0;
  link.begin = nullptr;
  const bool first = page.page_number() == 0 && (follows || (orbit - link.phase) % options_.orbits_per_frame == 0);
  if (!first) {
    counters_.add(no_begin);
    link.status |= chunk_status::kSoftwareTruncated;
  }
  return true;
}

// Notes the pieces of a frame: `parked` bytes of earlier superpages, then `here`.
void RdhFrameDecoder::hand_over_parts(LinkIndex index, std::size_t parked, std::span<const std::byte> here) {
  for (const auto part : open_parts_[index]) {
    const auto of_it = part.first(std::min(part.size(), parked));
    if (!of_it.empty()) options_.parts->push_back(of_it);
    parked -= of_it.size();
  }
  if (!here.empty()) options_.parts->push_back(here);
}

// Completes the open frame.
void RdhFrameDecoder::close(Link& link, LinkIndex index, DecodeBuffer& out) {
  link.open = false;
  ChunkRun run{.link = index};
  const std::size_t here = link.begin == nullptr ? 0 : static_cast<std::size_t>(link.end - link.begin);
  if (here == 0) link.parked = link.parked_end;
  if (link.parked == 0) {
    run.data = link.begin;
    run.size = static_cast<std::uint32_t>(here);
  } else {
    const std::size_t fits = std::min(here, options_.max_chunk_bytes - link.parked);
    std::byte* const joined = out.allocate_carry(link.parked + fits);
    std::memcpy(joined, parked_bytes(index), link.parked);
    if (fits > 0) std::memcpy(joined + link.parked, link.begin, fits);
    if (options_.parts != nullptr) hand_over_parts(index, link.parked, std::span(link.begin, fits));
    run.data = joined;
    run.size = static_cast<std::uint32_t>(link.parked + fits);
    counters_.add(joined_frames);
  }
  if (options_.parts != nullptr) open_parts_[index].clear();
  link.parked = link.parked_end = 0;
  link.begin = nullptr;
  if (run.size == 0) return;
  const std::uint64_t length = here == 0 ? link.length_end : link.length + here;
  if (length > run.size) {
    counters_.add(oversize);
    counters_.add(cut_bytes, length - run.size);
    link.status |= chunk_status::kSoftwareTruncated;
  }
  run.stride = run.size;
  run.count = 1;
  run.status = link.status;
  out.add(run);
  counters_.add(frames);
}

// The superpage ends within a frame: copies its bytes, with the padding behind the last page, so that the next page keeps
// its place.
void RdhFrameDecoder::park(Link& link, LinkIndex index) {
  if (link.begin == nullptr) return;
  const auto here = static_cast<std::size_t>(link.next - link.begin);
  const auto payload_ends = static_cast<std::size_t>(link.end - link.begin);
  const std::size_t fits = std::min(here, options_.max_chunk_bytes - link.parked);
  std::memcpy(parked_bytes(index) + link.parked, link.begin, fits);
  if (options_.parts != nullptr && fits > 0) open_parts_[index].emplace_back(link.begin, fits);
  link.parked_end = link.parked + std::min(fits, payload_ends);
  link.parked += fits;
  link.length_end = link.length + payload_ends;
  link.length += here;
  link.begin = nullptr;
}

std::size_t RdhFrameDecoder::decode(std::uint8_t link_id, std::span<const std::byte> superpage, std::size_t from,
                                    DecodeBuffer& out) {
  const LinkIndex index = index_of_link_[link_id];
  if (index == kUnmapped) return superpage.size() - from;
  Link& link = links_[index];
  const std::size_t begin = from;
  const DecodeBuffer::Capacity two_frames{.runs = 2, .entries = 0, .carry_bytes = 2 * std::size_t{options_.max_chunk_bytes}};
  std::size_t at = from;
  while (at < superpage.size()) {
    if (at != begin && (out.runs().size() >= kRunsPerCall || !out.has_room(two_frames))) return at - begin;
    const std::span<const std::byte> rest = superpage.subspan(at);
    Rdh page;
    if (rest.size() >= kRdhBytes) page = Rdh::read(rest.data());
    if (rest.size() < kRdhBytes || !page.plausible() || page.offset_next() > rest.size() ||
        page.memory_size() > page.offset_next()) {
      counters_.add(bad_rdh);
      counters_.add(skipped_bytes, rest.size());
      if (link.open) {
        link.status |= chunk_status::kSoftwareMalformed;
        close(link, index, out);
      }
      link.joined = link.joined && options_.orbits_per_frame == 1;
      return superpage.size() - begin;
    }
    counters_.add(pages);
    at += page.offset_next();
    if (page.link_id() != link_id) {
      counters_.add(wrong_link);
      if (link.open) {
        link.status |= chunk_status::kSoftwareMalformed;
        close(link, index, out);
      }
      continue;
    }
    const std::uint32_t frame = (page.orbit() - link.phase) / options_.orbits_per_frame;
    const Order order = link.joined ? order_of(link, page, frame) : Order::gap;
    if (link.joined) learn_rules(link, page, order);
    link.next_packet = static_cast<std::uint8_t>(page.packet_counter() + 1);
    link.orbit = page.orbit();
    link.page_number = page.page_number();
    if (link.open && (frame != link.frame || (options_.orbits_per_frame == 1 && page.page_number() == 0))) {
      if (order != Order::other_frame) {
        counters_.add(no_stop);
        link.status |= chunk_status::kSoftwareTruncated;
      }
      close(link, index, out);
    }
    if (link.open && order == Order::gap) {
      counters_.add(page_gaps);
      link.status |= chunk_status::kSoftwareTruncated;
    }
    if (!link.open && !start_frame(link, page, order == Order::other_frame)) continue;
    if (link.begin == nullptr) link.begin = rest.data();
    link.end = rest.data() + page.memory_size();
    link.next = rest.data() + page.offset_next();
    link.stopped = page.stop();
    const bool last_orbit = (page.orbit() - link.phase) % options_.orbits_per_frame == options_.orbits_per_frame - 1;
    if (page.stop() && last_orbit) close(link, index, out);
  }
  if (link.open) park(link, index);
  return superpage.size() - begin;
}

void RdhFrameDecoder::finish(DecodeBuffer& out) {
  if (packets_.own()) count_packet_gaps();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = links_[i];
    if (!link.open) continue;
    if (link.stopped) {
      counters_.add(short_frames);
    } else {
      counters_.add(unfinished);
      link.status |= chunk_status::kSoftwareTruncated;
    }
    close(link, static_cast<LinkIndex>(i), out);
  }
}

}  // namespace rodeo::formats
