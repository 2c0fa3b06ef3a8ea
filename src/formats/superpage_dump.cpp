#include "formats/superpage_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "formats/rdh_payload.h"
#include "formats/words.h"

namespace rodeo::formats {
namespace {

constexpr std::size_t kInternalWords = 8;  // words of the internal generator with the same value
constexpr std::size_t kPageGrid = 4;       // pages begin at multiples of this
// The most bytes in one check, if no begin of a superpage is found.
constexpr std::size_t kLongestSuperpage = std::size_t{1} << 28;

std::optional<Rdh> page_at(std::span<const std::byte> file, std::size_t at) {
  if (at > file.size() || file.size() - at < kRdhBytes) return std::nullopt;
  const Rdh page = Rdh::read(file.data() + at);
  return page.plausible() ? std::optional(page) : std::nullopt;
}

// True if the page is followed by a second one or by the end of the file: payload that looks like a header is not.
bool is_page(std::span<const std::byte> file, std::size_t at) {
  const std::optional<Rdh> page = page_at(file, at);
  return page && (at + page->offset_next() >= file.size() || page_at(file, at + page->offset_next()));
}

bool starts_like_internal(std::span<const std::byte> file) {
  constexpr std::size_t kUnit = kInternalWords * kWordBytes;
  return file.size() >= 2 * kUnit && cru_internal_matches(file.first(2 * kUnit), load_word(file.data()));
}

// The first place at or after `from` where pages continue.
std::size_t next_page(std::span<const std::byte> file, std::size_t from) {
  while (from < file.size() && !is_page(file, from)) from += kPageGrid;
  return std::min(from, file.size());
}

// A dump does not mark the begins of superpages. All pages of a superpage have the same link, and a time frame begins a new
// one. So the pages of a link up to the next time frame count as one superpage, together with following bytes that are not a
// page.
template <typename Visit>
void for_each_superpage(std::span<const std::byte> file, const DumpEndpoints& endpoints, Visit visit) {
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t begin = at;
    std::optional<Rdh> page = page_at(file, at);
    const std::optional<Rdh> first = page;
    const std::uint32_t endpoint = first ? endpoints.of(*first) : 0;
    while (page && page->link_id() == first->link_id() && endpoints.of(*page) == endpoint &&
           at - begin < kLongestSuperpage && (at == begin || (page->trigger_type() & rdh_trigger::kTimeFrame) == 0)) {
      at += page->offset_next();
      page = page_at(file, at);
    }
    if (!page) at = next_page(file, std::min(at, file.size()));
    visit(first ? static_cast<std::uint8_t>(first->link_id()) : std::uint8_t{0}, endpoint, begin, at);
  }
}

PagePattern pattern_of_payload(const Rdh& page, std::span<const std::byte> payload, std::uint64_t seed) {
  if (payload.size() < 32) return PagePattern::unknown;
  if (rdh_payload_matches(Provable(seed), page, payload)) return PagePattern::provable;
  const std::uint32_t first = load_word(payload.data());
  if (ddg_matches(payload, first)) return PagePattern::ddg;
  return words_match(payload, first) ? PagePattern::words : PagePattern::unknown;
}

// Collects the contents of the headers: links and their frames, the kind of payload, and the length of time frames.
void survey(std::span<const std::byte> file, const DumpEndpoints& endpoints, std::uint64_t seed, SuperpageDumpInfo& info) {
  std::map<std::uint32_t, SuperpageDumpInfo::Link> links;
  std::map<std::uint32_t, std::uint32_t> frame_of_link;
  std::map<std::uint32_t, std::uint64_t> lengths;
  std::uint64_t all_lengths = 0;
  for_each_page(file, [&](std::size_t at) {
    const Rdh page = Rdh::read(file.data() + at);
    const std::uint32_t number = endpoints.of(page) << 8 | page.link_id();
    const auto payload =
        file.subspan(at).first(std::min<std::size_t>(page.memory_size(), file.size() - at)).subspan(kRdhBytes);
    const auto [entry, is_new] = links.try_emplace(number);
    SuperpageDumpInfo::Link& link = entry->second;
    if (is_new) {
      link = {.link = static_cast<std::uint8_t>(page.link_id()),
              .cru = static_cast<std::uint16_t>(page.cru_id()),
              .endpoint = static_cast<std::uint8_t>(page.endpoint()),
              .fee_id = static_cast<std::uint16_t>(page.fee_id()),
              .first_orbit = page.orbit()};
    }
    ++link.pages;
    link.payload_bytes += payload.size();
    link.heartbeat_frames += page.stop() ? 1 : 0;
    link.last_orbit = page.orbit();
    if (info.pattern == PagePattern::unknown) info.pattern = pattern_of_payload(page, payload, seed);
    if ((page.trigger_type() & rdh_trigger::kTimeFrame) != 0) {
      const auto [frame, first] = frame_of_link.try_emplace(number, page.orbit());
      if (const std::uint32_t length = page.orbit() - frame->second; length != 0) {
        ++lengths[length];
        ++all_lengths;
      }
      frame->second = page.orbit();
    }
    return true;
  });
  for (const auto& [number, link] : links) info.links.push_back(link);
  const auto most = std::ranges::max_element(lengths, {}, [](const auto& length) { return length.second; });
  if (most != lengths.end() && most->second * 2 >= all_lengths) info.time_frame_orbits = most->first;
}

}  // namespace

DumpEndpoints::DumpEndpoints(std::span<const std::byte> file) {
  for_each_page(file, [&](std::size_t at) {
    numbers_.try_emplace(key_of(Rdh::read(file.data() + at)), static_cast<std::uint32_t>(numbers_.size()));
    return numbers_.size() <= kMost;
  });
  if (numbers_.size() > kMost) numbers_.clear();
}

std::uint32_t DumpEndpoints::of(const Rdh& page) const {
  const auto number = numbers_.find(key_of(page));
  return number == numbers_.end() ? 0 : number->second;
}

std::string DumpEndpoints::name_of(std::uint32_t number) const {
  const auto named = std::ranges::find(numbers_, number, [](const auto& one) { return one.second; });
  if (count() < 2 || named == numbers_.end()) return {};
  return fmt::format("CRU {:#x} endpoint {}", named->first & 0xfffU, named->first >> 12);
}

bool starts_like_superpages(std::span<const std::byte> file) { return is_page(file, 0) || starts_like_internal(file); }

void for_each_page(std::span<const std::byte> file, const std::function<bool(std::size_t)>& visit) {
  for (std::size_t at = 0; at < file.size();) {
    const std::optional<Rdh> page = page_at(file, at);
    if (page && !visit(at)) return;
    at = page ? at + page->offset_next() : next_page(file, at);
  }
}

SuperpageDumpInfo inspect_superpage_dump(std::span<const std::byte> file, std::uint64_t seed,
                                         const std::function<void(std::uint64_t)>& worked) {
  SuperpageDumpInfo info;
  const bool internal = starts_like_internal(file);
  const DumpEndpoints endpoints(internal ? std::span<const std::byte>() : file);
  if (internal) {
    info.pattern = PagePattern::cru_internal;
  } else {
    survey(file, endpoints, seed, info);
  }
  SuperpageCheck check({.pattern = info.pattern,
                        .time_frame_orbits = info.time_frame_orbits,
                        .seed = seed,
                        .most_findings = Findings::kListed});
  std::vector<std::size_t> begins;
  std::map<std::uint32_t, std::size_t> last_begins;  // place of the last begin, by endpoint << 8 | link
  std::size_t told = 0;
  const auto look = [&](std::uint8_t link, std::uint32_t endpoint, std::size_t begin, std::size_t end) {
    if (worked) worked(begin - std::exchange(told, begin));
    begins.push_back(begin);
    last_begins[endpoint << 8 | link] = begin;
    check.check(link, file.subspan(begin, end - begin), endpoint);
  };
  if (internal) {
    for (std::size_t at = 0; at < file.size(); at += kLongestSuperpage)
      look(0, 0, at, std::min(at + kLongestSuperpage, file.size()));
  } else {
    for_each_superpage(file, endpoints, look);
  }
  check.finish();
  if (worked) worked(file.size() - told);
  for (std::size_t i = 0; i < kSuperpageCounters; ++i) info.counters[i] = check.count(static_cast<SuperpageCounter>(i));
  info.shared_packet_counters = check.shares_packet_counters();
  const auto steps = check.orbit_steps();
  info.orbit_steps.assign(steps.usual.begin(), steps.usual.end());
  if (info.orbit_steps.size() == 1 && !steps.differ) info.orbit_step = info.orbit_steps.front();
  info.orbits_differ = steps.differ;
  info.orbits_vary = steps.vary;
  const std::vector<SuperpageFinding> findings = check.findings();
  for (const SuperpageFinding& finding : findings)
    info.findings.add(begins[finding.superpage] + finding.offset, describe(finding, endpoints.name_of(finding.endpoint)));
  info.findings.add_unlisted(check.errors() - std::min<std::uint64_t>(findings.size(), check.errors()));
  for (const std::uint32_t link : check.silent_links()) {
    const std::string name = endpoints.name_of(link >> 8);
    info.findings.add(last_begins[link], fmt::format("silent_links: {}{}link {} ends here, the others go on", name,
                                                     name.empty() ? "" : ", ", link & 0xffU));
  }
  return info;
}

DumpNode dump_page(std::span<const std::byte> file, std::size_t offset, std::string title) {
  const std::span<const std::byte> rest = file.subspan(offset);
  const Rdh page = Rdh::read(rest.data());
  DumpNode node{.kind = "page", .title = std::move(title)};
  const auto name = [&](const char* words, std::string meaning) {
    const std::size_t word = node.fields.size();
    node.fields.push_back({word * kWordBytes, page.words[word], words, std::move(meaning)});
  };
  name("version, sizes, FEE id",
       fmt::format("version {}, header of {} bytes, FEE id {:#x}", page.version(), page.header_size(), page.fee_id()));
  name("priority, system id", fmt::format("priority {}, system {}", page.priority(), page.system_id()));
  name("offset, memory size",
       fmt::format("next header after {} bytes, {} bytes in use", page.offset_next(), page.memory_size()));
  name("link, packet, CRU id", fmt::format("link {}, packet {}, CRU {:#x}, endpoint {}", page.link_id(),
                                           page.packet_counter(), page.cru_id(), page.endpoint()));
  name("bunch crossing", fmt::format("{}", page.bc()));
  name("orbit", fmt::format("{}", page.orbit()));
  name("data format", fmt::format("{}", page.data_format()));
  name("reserved", {});
  std::string triggers;
  constexpr std::array<const char*, 12> kTriggers{"orbit",
                                                  "heartbeat",
                                                  "heartbeat reject",
                                                  {},
                                                  "physics",
                                                  {},
                                                  "calibration",
                                                  "start of triggered",
                                                  "end of triggered",
                                                  "start of continuous",
                                                  "end of continuous",
                                                  "time frame"};
  for (std::size_t bit = 0; bit < 32; ++bit) {
    if ((page.trigger_type() >> bit & 1U) == 0) continue;
    const bool named = bit < kTriggers.size() && kTriggers[bit] != nullptr;
    triggers += (triggers.empty() ? "" : ", ") + (named ? std::string(kTriggers[bit]) : fmt::format("bit {}", bit));
  }
  name("trigger type", std::move(triggers));
  name("page, stop bit",
       fmt::format("page {} of its heartbeat frame{}", page.page_number(), page.stop() ? ", the last" : ""));
  name("reserved", {});
  name("reserved", {});
  name("detector field", {});
  for (int i = 0; i < 3; ++i) name("reserved", {});
  node.bytes_offset = kRdhBytes;
  node.bytes = rest.first(std::min<std::size_t>(page.memory_size(), rest.size())).subspan(kRdhBytes);
  if (page.offset_next() > rest.size()) node.notes.push_back("the file ends within the page");
  return node;
}

}  // namespace rodeo::formats
