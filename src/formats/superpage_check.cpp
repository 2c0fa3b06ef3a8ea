#include "formats/superpage_check.h"

#include <emmintrin.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "formats/rdh_payload.h"

namespace rodeo::formats {

namespace {

using enum SuperpageCounter;

// Limit of the memory for the orbits of an endpoint, 24 bytes each. At the limit, the orbits recorded up to now are judged
// and forgotten.
constexpr std::size_t kMostRuns = std::size_t{1} << 20;

std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

void put_word(std::span<std::byte> bytes, std::size_t at, std::uint32_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof word);
}

__m128i load(const std::byte* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

bool is_zero(__m128i bits) { return _mm_movemask_epi8(_mm_cmpeq_epi8(bits, _mm_setzero_si128())) == 0xffff; }

__m128i all_words(std::uint32_t word) { return _mm_set1_epi32(static_cast<int>(word)); }

}  // namespace

std::uint32_t write_ddg(std::span<std::byte> payload, std::uint32_t counter) {
  for (std::size_t at = 0; at + 16 <= payload.size(); at += 16, ++counter) {
    put_word(payload, at, counter);
    put_word(payload, at + 4, counter);
    put_word(payload, at + 8, counter & 0xffffU);
    put_word(payload, at + 12, 0);
  }
  return counter;
}

std::uint32_t write_words(std::span<std::byte> payload, std::uint32_t counter) {
  for (std::size_t at = 0; at + 4 <= payload.size(); at += 4, ++counter) put_word(payload, at, counter);
  return counter;
}

std::uint32_t write_cru_internal(std::span<std::byte> page, std::uint32_t counter) {
  for (std::size_t at = 0; at + 32 <= page.size(); at += 32, ++counter) {
    for (std::size_t word = 0; word < 32; word += 4) put_word(page, at + word, counter);
  }
  return counter;
}

bool ddg_matches(std::span<const std::byte> payload, std::uint32_t counter) {
  const __m128i mask = _mm_set_epi32(0, 0xffff, -1, -1);
  const __m128i one = _mm_set_epi32(0, 1, 1, 1);
  __m128i wanted = _mm_set_epi32(0, static_cast<int>(counter), static_cast<int>(counter), static_cast<int>(counter));
  __m128i difference = _mm_setzero_si128();
  for (std::size_t at = 0; at + 16 <= payload.size(); at += 16) {
    difference = _mm_or_si128(difference, _mm_xor_si128(load(payload.data() + at), _mm_and_si128(wanted, mask)));
    wanted = _mm_add_epi32(wanted, one);
  }
  return is_zero(difference);
}

bool words_match(std::span<const std::byte> payload, std::uint32_t counter) {
  __m128i wanted = _mm_add_epi32(all_words(counter), _mm_set_epi32(3, 2, 1, 0));
  __m128i difference = _mm_setzero_si128();
  std::size_t at = 0;
  for (; at + 16 <= payload.size(); at += 16) {
    difference = _mm_or_si128(difference, _mm_xor_si128(load(payload.data() + at), wanted));
    wanted = _mm_add_epi32(wanted, all_words(4));
  }
  std::uint32_t rest = 0;
  for (; at + 4 <= payload.size(); at += 4) rest |= word_at(payload, at) ^ (counter + static_cast<std::uint32_t>(at / 4));
  return rest == 0 && is_zero(difference);
}

bool cru_internal_matches(std::span<const std::byte> page, std::uint32_t counter) {
  __m128i wanted = all_words(counter);
  __m128i difference = _mm_setzero_si128();
  for (std::size_t at = 0; at + 32 <= page.size(); at += 32) {
    difference = _mm_or_si128(difference, _mm_xor_si128(load(page.data() + at), wanted));
    difference = _mm_or_si128(difference, _mm_xor_si128(load(page.data() + at + 16), wanted));
    wanted = _mm_add_epi32(wanted, all_words(1));
  }
  return is_zero(difference);
}

std::string describe(const SuperpageFinding& finding, std::string_view endpoint) {
  return fmt::format("{}: {}{}link {}, superpage {}, byte {}: expected {:#x}, found {:#x}",
                     kSuperpageCounterInfo[static_cast<std::size_t>(finding.what)].name, endpoint,
                     endpoint.empty() ? "" : ", ", finding.link, finding.superpage, finding.offset, finding.expected,
                     finding.found);
}

SuperpageCheck::SuperpageCheck(const SuperpageCheckSettings& settings) : settings_(settings), provable_(settings.seed) {
  settings_.every = std::max(settings_.every, 1U);
  settings_.page_bytes = std::max(settings_.page_bytes / 32 * 32, 32U);
}

std::uint64_t SuperpageCheck::errors() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kSuperpageCounters; ++i) {
    const auto counter = static_cast<SuperpageCounter>(i);
    if (is_error(counter)) sum += count(counter);
  }
  return sum;
}

void SuperpageCheck::found(SuperpageCounter what, std::uint8_t link, std::uint32_t offset, std::uint64_t expected,
                           std::uint64_t value) {
  if (what == SuperpageCounter::orbit) {
    ++orbit_errors_;
  } else {
    add(what);
  }
  if (findings_.size() < settings_.most_findings)
    findings_.push_back({what, link, superpage_, offset, expected, value, endpoint_number_});
}

void SuperpageCheck::doubt(SuperpageCounter what, std::uint8_t link, std::uint32_t offset, std::uint64_t expected,
                           std::uint64_t value, const OrbitHistory::Run& step) {
  if (doubts_full_) return;
  // Many doubts turn out to be correct data, so more doubts than findings are kept.
  const std::size_t most = settings_.most_findings == 0 ? 0 : std::max<std::size_t>(settings_.most_findings, 10'000);
  if (doubts_.size() >= most) {
    for (const auto& [number, endpoint] : endpoints_) check_others(*endpoint);
    std::erase_if(doubts_, [&](const Doubt& doubt) { return !is_error_by_rules(doubt); });
    doubts_full_ = most == 0 || doubts_.size() > most / 2;  // stop here: otherwise each further doubt might cost a scan
  }
  if (!doubts_full_)
    doubts_.push_back(
        {{what, link, superpage_, offset, expected, value, endpoint_number_}, step.step, step.from, step.counter_follows});
}

bool SuperpageCheck::is_error_by_rules(const Doubt& doubt) const {
  const Endpoint& endpoint = *endpoints_.at(doubt.finding.endpoint);
  if (doubt.finding.what == packet_counter) return !endpoint.packets.shared();
  const auto usual = endpoint.orbits.step();
  if (!usual || *usual == doubt.step) return false;
  if (endpoint.orbits.strict()) return true;
  return endpoint.packets.shared() ? doubt.step > *usual && doubt.others_arrived : !doubt.counter_follows;
}

bool SuperpageCheck::others_arrived(const Endpoint& endpoint, const Link& link, std::int64_t from, std::uint32_t step) {
  return std::ranges::any_of(
      endpoint.links, [&](const Link& other) { return &other != &link && other.history.has_frame(from, from + step); });
}

// Notes for each doubt whether other links have frames in the orbits between.
void SuperpageCheck::check_others(Endpoint& endpoint) {
  for (Link& link : endpoint.links) link.history.sort();
  for (Doubt& doubt : doubts_) {
    if (doubt.step == 0 || endpoints_.at(doubt.finding.endpoint).get() != &endpoint) continue;
    doubt.others_arrived =
        doubt.others_arrived || others_arrived(endpoint, endpoint.links[doubt.finding.link], doubt.from, doubt.step);
  }
}

// Counts the frames that are missing by evidence, and forgets the histories. `strict` endpoints need no evidence.
void SuperpageCheck::end_stretch(Endpoint& endpoint) {
  check_others(endpoint);
  const auto usual = endpoint.orbits.step();
  for (const Link& link : endpoint.links) {
    if (!usual || endpoint.orbits.strict()) break;
    for (const OrbitHistory::Run& run : link.history.runs()) {
      if (run.step == *usual) continue;
      if (!endpoint.packets.shared()) {
        endpoint.missing_frames += run.counter_follows ? 0 : run.times;
        continue;
      }
      for (std::uint32_t i = 0; run.step > *usual && i < run.times; ++i)
        endpoint.missing_frames += others_arrived(endpoint, link, run.from + std::int64_t{run.step} * i, run.step) ? 1 : 0;
    }
  }
  for (Link& link : endpoint.links) link.history.clear();
  endpoint.runs = 0;
}

void SuperpageCheck::finish() {
  for (const auto& [number, endpoint] : endpoints_) end_stretch(*endpoint);
  judge();
}

// Sets the counters that depend on rules, by the rules learnt up to now.
void SuperpageCheck::judge() {
  std::uint64_t packets = 0;
  std::uint64_t orbits = orbit_errors_;
  for (const auto& [number, endpoint] : endpoints_) {
    packets += endpoint->packets.shared() ? 0 : endpoint->packet_errors;
    if (endpoint->orbits.step()) orbits += endpoint->orbits.strict() ? endpoint->orbits.others() : endpoint->missing_frames;
  }
  counts_[static_cast<std::size_t>(packet_counter)].set(packets);
  counts_[static_cast<std::size_t>(SuperpageCounter::orbit)].set(orbits);
}

std::vector<SuperpageFinding> SuperpageCheck::findings() const {
  std::vector<SuperpageFinding> all = findings_;
  for (const Doubt& doubt : doubts_) {
    if (!is_error_by_rules(doubt)) continue;
    all.push_back(doubt.finding);
    if (doubt.finding.what == SuperpageCounter::orbit) {
      SuperpageFinding& finding = all.back();
      finding.expected = (finding.found - doubt.step + *endpoints_.at(finding.endpoint)->orbits.step()) & 0xffffffffU;
    }
  }
  std::ranges::stable_sort(all, [](const SuperpageFinding& one, const SuperpageFinding& other) {
    return std::pair(one.superpage, one.offset) < std::pair(other.superpage, other.offset);
  });
  if (all.size() > settings_.most_findings) all.resize(settings_.most_findings);
  return all;
}

bool SuperpageCheck::shares_packet_counters() const {
  return std::ranges::any_of(endpoints_, [](const auto& endpoint) { return endpoint.second->packets.shared(); });
}

SuperpageCheck::OrbitSteps SuperpageCheck::orbit_steps() const {
  OrbitSteps steps;
  for (const auto& [number, endpoint] : endpoints_) {
    if (const auto usual = endpoint->orbits.step()) {
      steps.usual.insert(*usual);
      steps.vary = steps.vary || !endpoint->orbits.strict();
    } else {
      steps.differ = steps.differ || endpoint->orbits.steps() > 0;
    }
  }
  return steps;
}

void SuperpageCheck::check(std::uint8_t link, std::span<const std::byte> superpage, std::uint32_t endpoint) {
  add(superpages);
  add(bytes, superpage.size());
  if (endpoint_ == nullptr || endpoint != endpoint_number_) {
    auto& known = endpoints_[endpoint];
    if (!known) known = std::make_unique<Endpoint>();
    endpoint_ = known.get();
    endpoint_number_ = endpoint;
  }
  Link& state = endpoint_->links[link];
  const std::uint64_t now = count(bytes);
  state.alive_at = state.seen_at == 0 ? now : state.seen_at;
  state.seen_at = now;
  most_bytes_ = std::max<std::uint64_t>(most_bytes_, superpage.size());
  if (settings_.pattern == PagePattern::cru_internal) {
    check_internal(state, link, superpage);
  } else {
    check_pages(state, link, superpage);
  }
  judge();
  ++superpage_;
}

void SuperpageCheck::check_pages(Link& link, std::uint8_t number, std::span<const std::byte> superpage) {
  std::size_t at = 0;
  orbits_here_ = 1;
  while (at < superpage.size()) {
    const auto offset = static_cast<std::uint32_t>(at);
    const std::size_t left = superpage.size() - at;
    if (left < kRdhBytes) return found(beyond_end, number, offset, kRdhBytes, left);
    const Rdh page = Rdh::read(superpage.data() + at);
    add(pages);
    const std::uint32_t length = page.offset_next();
    if ((page.version() != 6 && page.version() != 7) || page.header_size() != kRdhBytes) {
      // The sizes in such a header cannot be used.
      link.packets_known = link.pattern_known = link.orbit_known = false;
      return found(bad_header, number, offset, kRdhBytes << 8 | 7, page.words[0] & 0xffffU);
    }
    if (length == 0) return found(no_offset, number, offset, kRdhBytes, 0);
    const bool sized = page.memory_size() >= kRdhBytes && page.memory_size() <= std::min(length, settings_.page_bytes);
    if (!sized) found(bad_size, number, offset, length, page.memory_size());
    if (length < kRdhBytes || length > left) return found(beyond_end, number, offset, left, length);
    if (page.link_id() != number) found(wrong_link, number, offset, number, page.link_id());

    const bool wanted = !link.packets_known || ++link.skipped >= settings_.every;
    if (wanted) check_packet_counter(link, number, page, offset);
    check_heartbeat_frame(link, number, page, offset);
    if (settings_.time_frame_orbits != 0) check_time_frame(link, number, page, offset);
    if (sized) {
      check_payload(link, number, page, superpage.subspan(at + kRdhBytes, page.memory_size() - kRdhBytes), offset, wanted);
    } else {
      link.pattern_known = false;
    }
    at += length;
  }
}

// Checks a sampled page. Its meaning depends on the rule, which may still change.
void SuperpageCheck::check_packet_counter(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset) {
  const std::uint64_t period = std::uint64_t{settings_.packet_counter_max} + 1;
  const auto expected = static_cast<std::uint32_t>((link.packet + std::uint64_t{link.skipped}) % period);
  const bool follows = !link.packets_known || page.packet_counter() == expected;
  if (!follows) {
    ++endpoint_->packet_errors;
    if (!endpoint_->packets.certainly_shared()) doubt(packet_counter, number, offset, expected, page.packet_counter());
  }
  link.packet = !follows && !settings_.resynchronise ? expected : page.packet_counter();
  link.packets_known = true;
  link.skipped = 0;
}

/// A frame consists of the pages of one orbit, numbered from 0, up to the page with the stop bit.
void SuperpageCheck::check_heartbeat_frame(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset) {
  const std::uint32_t packet = std::exchange(link.last_packet, page.packet_counter());
  const std::uint32_t last_orbit = std::exchange(link.orbit, page.orbit());
  const std::uint32_t page_number = link.ended ? 0 : (link.page_number + 1) & 0xffffU;
  const bool ended = std::exchange(link.ended, page.stop());
  link.page_number = page.page_number();
  if (!endpoint_->first_orbit) endpoint_->first_orbit = page.orbit();
  const std::int64_t from =
      std::exchange(link.position, link.first_orbit ? link.position + static_cast<std::int32_t>(page.orbit() - last_orbit)
                                                    : static_cast<std::int32_t>(page.orbit() - *endpoint_->first_orbit));
  if (!std::exchange(link.orbit_known, true)) {
    if (!link.first_orbit) link.first_orbit = page.orbit();
    return;
  }
  const std::uint64_t period = std::uint64_t{settings_.packet_counter_max} + 1;
  const bool packet_follows = page.packet_counter() == (packet + std::uint64_t{1}) % period;
  const bool page_follows = page.page_number() == page_number;
  const std::uint32_t step = page.orbit() - last_orbit;
  if (!settings_.heartbeat_frames) return;
  if (!ended && step != 0) return found(SuperpageCounter::orbit, number, offset, last_orbit, page.orbit());
  if (page_follows && !ended) endpoint_->packets.within_frame(packet_follows);
  if (page_follows && ended) endpoint_->packets.between_frames(packet_follows);
  if (!page_follows) found(SuperpageCounter::page_number, number, offset, page_number, page.page_number());
  if (!ended) return;
  OrbitRule& orbits = endpoint_->orbits;
  // Orbits wrap: an orbit more than half the range ahead is in the past.
  if (step == 0 || step >= UINT32_C(1) << 31) {
    found(SuperpageCounter::orbit, number, offset, last_orbit + orbits.step().value_or(1), page.orbit());
    return;
  }
  orbits.add(step);
  endpoint_->runs += link.history.add(from, step, packet_follows) ? 1 : 0;
  if (endpoint_->runs > kMostRuns) end_stretch(*endpoint_);
  constexpr std::uint64_t kFirst = 64;  // with fewer steps, any step may still turn out to be wrong
  if (orbits.steps() <= kFirst || orbits.step() != step)
    doubt(SuperpageCounter::orbit, number, offset, 0, page.orbit(), {from, step, 1, packet_follows});
  if (orbits.step().value_or(step) == step) most_orbits_ = std::max(most_orbits_, orbits_here_ += step);
}

std::optional<std::uint32_t> SuperpageCheck::first_orbit(std::uint8_t link) const {
  return endpoint_ == nullptr ? std::nullopt : endpoint_->links[link].first_orbit;
}

std::vector<std::uint32_t> SuperpageCheck::silent_links() const {
  struct Known {
    std::uint32_t number;  // endpoint << 8 | link
    const Link* link;
  };
  std::vector<Known> links;
  for (const auto& [number, endpoint] : endpoints_) {
    for (std::uint32_t i = 0; i < endpoint->links.size(); ++i) {
      if (endpoint->links[i].first_orbit) links.push_back({number << 8 | i, &endpoint->links[i]});
    }
  }
  if (links.empty()) return {};
  // Orbits wrap, so all orbits are counted from one of them.
  const std::uint32_t some = *links.front().link->first_orbit;
  const auto since = [&](std::uint32_t orbit) { return std::int64_t{static_cast<std::int32_t>(orbit - some)}; };
  std::int64_t oldest = 0;
  std::int64_t newest = 0;
  for (const Known& known : links) {
    oldest = std::min(oldest, since(*known.link->first_orbit));
    newest = std::max(newest, since(known.link->orbit));
  }
  const std::int64_t many_orbits = std::max((newest - oldest) / 8, std::int64_t{4} * most_orbits_);
  const std::uint64_t all_bytes = count(bytes);
  const std::uint64_t many_bytes = std::max(all_bytes / 8, 4 * links.size() * most_bytes_);
  std::vector<std::uint32_t> silent;
  for (const Known& known : links) {
    if (newest - since(known.link->orbit) > many_orbits && all_bytes - known.link->alive_at > many_bytes)
      silent.push_back(known.number);
  }
  return silent;
}

void SuperpageCheck::check_time_frame(Link& link, std::uint8_t number, const Rdh& page, std::uint32_t offset) {
  const std::uint32_t length = settings_.time_frame_orbits;
  constexpr std::uint32_t kStart = rdh_trigger::kStartOfContinuous | rdh_trigger::kStartOfTriggered;
  if ((page.trigger_type() & kStart) != 0) link.frame_known = false;
  if (!link.frame_known && (page.trigger_type() & rdh_trigger::kTimeFrame) != 0) {
    link.frame_known = true;
    link.next_frame = page.orbit() + length;
    return;
  }
  // Orbits wrap: an orbit less than half the range ahead has been reached.
  if (!link.frame_known || page.orbit() - link.next_frame >= UINT32_C(1) << 31) return;
  if (offset != 0) found(time_frame, number, offset, 0, page.orbit());
  link.next_frame += (page.orbit() - link.next_frame) / length * length + length;
}

/// Reports payload that differs from the output of `write` in its first `size` bytes, with the first difference.
template <typename Write>
void SuperpageCheck::found_other(std::uint8_t link, std::uint32_t offset, std::span<const std::byte> payload,
                                 std::size_t size, Write write) {
  constexpr std::size_t kLeast = 8;  // bytes of provable payload
  std::size_t at = 0;
  std::uint64_t expected = 0;
  std::uint64_t value = 0;
  if (findings_.size() < settings_.most_findings) {
    std::vector<std::byte> wanted(std::max(size, kLeast));
    write(std::span(wanted));
    const auto word = [size](const std::byte* bytes, std::size_t from) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes + from, std::min<std::size_t>(4, size - from));
      return bits;
    };
    while (at < size && word(wanted.data(), at) == word(payload.data(), at)) at += 4;
    if (at < size) {
      expected = word(wanted.data(), at);
      value = word(payload.data(), at);
    } else {  // the payload is equal, but too short for provable payload
      at = 0;
      expected = kLeast;
      value = size;
    }
  }
  found(SuperpageCounter::payload, link, offset + static_cast<std::uint32_t>(at), expected, value);
}

void SuperpageCheck::check_payload(Link& link, std::uint8_t number, const Rdh& page, std::span<const std::byte> payload,
                                   std::uint32_t offset, bool wanted) {
  if (payload.empty() || settings_.pattern == PagePattern::unknown) return;
  if (settings_.pattern == PagePattern::provable) {
    if (!wanted || rdh_payload_matches(provable_, page, payload)) return;
    found_other(number, offset + kRdhBytes, payload, payload.size(),
                [&](std::span<std::byte> bytes) { write_rdh_payload(provable_, page, bytes); });
    return;
  }
  if (payload.size() < 4) return;
  const std::uint32_t first = word_at(payload, 0);
  const std::uint32_t expected = link.pattern_known ? link.pattern : first;
  const bool ddg = settings_.pattern == PagePattern::ddg;
  const bool matches = !wanted || (ddg ? ddg_matches(payload, expected) : words_match(payload, expected));
  if (!matches) {
    found_other(number, offset + kRdhBytes, payload, payload.size() / (ddg ? 16 : 4) * (ddg ? 16 : 4),
                [&](std::span<std::byte> bytes) { ddg ? write_ddg(bytes, expected) : write_words(bytes, expected); });
  }
  link.pattern_known = true;
  const std::uint32_t from = matches || !settings_.resynchronise ? expected : first;
  link.pattern = from + static_cast<std::uint32_t>(payload.size() / (ddg ? 16 : 4));
}

void SuperpageCheck::check_internal(Link& link, std::uint8_t number, std::span<const std::byte> superpage) {
  std::uint32_t page_number = 0;
  for (std::size_t at = 0; at < superpage.size(); at += settings_.page_bytes, ++page_number) {
    const auto page = superpage.subspan(at, std::min<std::size_t>(settings_.page_bytes, superpage.size() - at));
    add(pages);
    if (page.size() < 32) return found(beyond_end, number, static_cast<std::uint32_t>(at), 32, page.size());
    const std::uint32_t first = word_at(page, 0);
    const std::uint32_t expected = link.pattern_known ? link.pattern : first;
    const bool matches = page_number % settings_.every != 0 || cru_internal_matches(page, expected);
    if (!matches) {
      found_other(number, static_cast<std::uint32_t>(at), page, page.size() / 32 * 32,
                  [&](std::span<std::byte> bytes) { write_cru_internal(bytes, expected); });
    }
    link.pattern_known = true;
    const std::uint32_t from = matches || !settings_.resynchronise ? expected : first;
    link.pattern = from + static_cast<std::uint32_t>(page.size() / 32);
  }
}

}  // namespace rodeo::formats
